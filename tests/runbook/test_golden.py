"""The backup triage written the long way, to the byte: wire, text, Markdown, decision cards.

When a difference is meant, run this file with ``RUNBOOK_NB_ACCEPT=1`` and commit the files with
the change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runbook_nb._ids import SeededIds
from runbook_nb.runbook import Envelope
from runbook_nb.settings import settings

HERE = Path(__file__).parent
ACCEPT = os.environ.get("RUNBOOK_NB_ACCEPT") == "1"


def written(call, kit, presentation):
    """Everything the golden holds, from one run."""
    with settings(ids=SeededIds(f"golden/{presentation}"), layout="pure"):
        envelope = call(presentation=presentation, walk={"recording": True})
        files = {
            "json": envelope.to_json(indent=1) + "\n",
            "dossier.json": json.dumps(
                envelope.dossier.to_dict(), ensure_ascii=False, allow_nan=False, indent=1
            )
            + "\n",
            "txt": f"{envelope}\n",
            "md": envelope.to_markdown(),
            "why.txt": "\n\n".join(str(envelope.why(row=n)) for n in range(3)) + "\n",
            "walk.json": json.dumps(kit.parcel(call.box, envelope), ensure_ascii=False, indent=1),
        }
    return envelope, files


def hold(name, text):
    path = HERE / "golden" / name
    if ACCEPT:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{name} changed; see the file's docstring"


@pytest.mark.parametrize("presentation", ["prose", "panel"])
def test_the_answer_is_the_golden_one(call, kit, presentation):
    _, files = written(call, kit, presentation)
    for suffix, text in files.items():
        hold(f"backup_triage.{presentation}.{suffix}", text)


@pytest.mark.parametrize("presentation", ["prose", "panel"])
def test_the_same_run_gives_the_same_bytes_again(call, kit, presentation):
    assert written(call, kit, presentation)[1] == written(call, kit, presentation)[1]


def test_another_process_gives_the_same_bytes():
    """With another hash seed, so that no order can come from hashing."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
    command += ["--import-mode=importlib", "-k", "golden_one", str(Path(__file__))]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "RUNBOOK_NB_ACCEPT": "0"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_facts_of_the_published_example_hold(call, kit):
    envelope, _ = written(call, kit, "prose")
    result, walk = envelope["result"], envelope["result"]["walk"]
    assert [row["verdict"] for row in result["verdicts"]] == [
        "protected",
        "unprotected",
        "declined",
    ]
    assert result["rows_total"] == 3
    assert walk["steps_executed"] == 15
    assert (
        walk["rows"] == walk["total"] == len(envelope.walk) == len(kit.parcel(call.box, envelope))
    )
    assert list(kit.parcel(call.box, envelope, "recording_ref")) == [
        "snapshot",
        "events",
        "structure",
    ]
    assert list(envelope) == ["af_coverage", "result"]
    assert list(result["verdicts"][0]) == ["subject", "verdict", "age"]


def test_the_golden_can_be_read_back_and_says_the_same(call, kit):
    envelope, files = written(call, kit, "prose")
    wire = json.loads(files["json"])
    wire["dossier"] = json.loads(files["dossier.json"])
    copy = Envelope.from_dict(wire, artifacts=call.box)
    assert copy == envelope
    assert f"{copy}\n" == files["txt"]
    assert [str(copy.why(row=n)) for n in range(3)] == [str(envelope.why(row=n)) for n in range(3)]
    assert list(copy.walk.rows) == list(envelope.walk)
    assert copy.recording().to_dict() == json.loads(json.dumps(envelope.recording().to_dict()))
    assert copy.dossier.to_dict() == wire["dossier"]
