"""The command: what it prints, what it writes, and what it exits with."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import runbook_nb
from runbook_nb import Envelope
from runbook_nb.cli.main import main, one_line
from runbook_nb.examples import certificates

AS_OF = "2026-11-29"
WRITTEN = ("envelope.json", "certificates.md", "certificates.html", "certificates.ipynb")


def test_the_demonstration_shows_the_answer_explains_a_row_and_says_what_it_wrote(call):
    status, out, err = call("demo", "--as-of", AS_OF)
    assert (status, err) == (0, "")
    envelope = certificates.run(AS_OF)
    assert out.startswith(f"{envelope}\n\nDecision NetLock Arany (Class Gold) Főtanúsítvány")
    assert re.search(r"8 +watch +days_left +738 +<= +1095 days +yes, taken", out)
    folder = Path("runbook-nb-demo")
    for line, name in zip(out.splitlines()[-4:], WRITTEN, strict=True):
        assert line.startswith(f"wrote {folder / name} (")


def test_what_it_writes_can_be_read_back_with_its_evidence(call):
    call("demo", "--as-of", AS_OF, "--out", "there/deep")
    read = json.loads(Path("there/deep/envelope.json").read_text(encoding="utf-8"))
    copy = Envelope.from_dict(read)
    assert copy.verdicts.counts() == {"watch": 5, "note": 3, "keep": 109}
    assert copy.why("ACCVRAIZ1").sentence.startswith("note by rule 9 of root-attention v1")
    markdown = Path("there/deep/certificates.md").read_text(encoding="utf-8")
    assert markdown == f"{certificates.run(AS_OF).to_markdown()}\n"
    assert {p.name for p in Path("there/deep").iterdir()} == set(WRITTEN)
    from_notebook = Envelope.from_notebook("there/deep/certificates.ipynb")
    assert from_notebook == copy
    assert from_notebook.why("ACCVRAIZ1").sentence == copy.why("ACCVRAIZ1").sentence


def test_the_same_date_gives_the_same_bytes_in_any_process(tmp_path):
    runs = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "runbook_nb", "demo", "--as-of", AS_OF],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"},
            check=True,
            capture_output=True,
        )
        files = sorted((folder / "runbook-nb-demo").iterdir())
        runs.append((done.stdout, [(path.name, path.read_bytes()) for path in files]))
    assert runs[0] == runs[1]


def test_another_date_moves_the_verdicts(call):
    _, out, _ = call("demo", "--as-of", "2030-01-01")
    assert "117 rows (8 remove, 5 plan-removal, 104 keep)" in out.splitlines()[0]


def test_a_second_run_replaces_the_files(call):
    call("demo", "--as-of", "2030-01-01")
    call("demo", "--as-of", AS_OF)
    read = json.loads(Path("runbook-nb-demo/envelope.json").read_text(encoding="utf-8"))
    assert read["result"]["as_of"] == AS_OF


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--as-of", "2026-02-30"], "--as-of: '2026-02-30' is not a date"),
        (["demo", "--as-of", "soon"], "write it as 2026-11-29"),
        (["demo", "--as-of"], "--as-of"),
        (["demo", "--nothing"], "--nothing"),
        (["demo", "more"], "more"),
        (["dance"], "dance"),
        (["--nothing"], "--nothing"),
        (["demo", "--out", "taken"], "--out"),
        (["demo", "--out", "taken/below"], "--out: the folder 'taken/below' cannot be made"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2_and_runs_nothing(call, tmp_path, arguments, words):
    (tmp_path / "taken").write_text("a file")
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("runbook-nb: ")
    assert err.count("\n") == 1
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_run_that_fails_is_one_line_status_3_and_an_incomplete_answer(call):
    status, out, err = call("demo", "--bundle", "gone.pem")
    assert status == 3
    assert err.count("\n") == 1
    assert err.startswith("runbook-nb: the certificate bundle 'gone.pem' cannot be opened")
    assert out.startswith("Run root-certificates failed at read")
    assert "Traceback" not in out + err
    assert list(Path("runbook-nb-demo").iterdir()) == []


def test_nothing_to_judge_is_status_3(call, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    status, out, err = call("demo", "--bundle", "empty.pem")
    assert (status, out) == (3, "")
    assert err == (
        "runbook-nb: nothing found for: certificates in bundle empty.pem · "
        "try a bundle in PEM form\n"
    )


def test_a_missing_package_is_status_3_with_the_line_that_installs_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "certifi", None)
    status, _, err = call("demo")
    assert status == 3
    assert "pip install certifi cryptography" in err


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(runbook_nb.errors.LoadError):
        main(["demo", "--bundle", "gone.pem", "--debug"])


def test_an_interrupt_is_said_and_leaves_with_the_status_of_shells(call, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("runbook_nb.tools.Toolbox.call_sync", interrupted)
    status, _, err = call("demo")
    assert status == 130
    assert err.strip() == "runbook-nb: interrupted"


def test_a_write_that_fails_leaves_no_half_file(call, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    status, _, err = call("demo", "--as-of", AS_OF)
    assert status == 3
    assert "No space left" in err
    assert list((tmp_path / "runbook-nb-demo").iterdir()) == []


def test_a_terminal_that_knows_few_characters_shows_the_others_as_numbers(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "runbook_nb", "demo", "--as-of", AS_OF],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=True,
        capture_output=True,
    )
    assert b"NetLock Arany (Class Gold" in done.stdout
    assert b"\\xb7" in done.stdout


@pytest.mark.parametrize("arguments", [["--version"], ["--version", "demo"]])
def test_the_version_is_that_of_the_package(call, arguments):
    assert call(*arguments) == (0, f"runbook-nb {runbook_nb.__version__}\n", "")


def test_without_a_command_the_help_is_shown(call):
    status, out, _ = call()
    assert status == 0
    assert "demo" in out


def test_the_help_documents_the_exit_statuses(call):
    status, out, _ = call("--help")
    assert status == 0
    words = " ".join(out.split())
    assert (
        "Exit status: 0 as it should be; 1 what was asked for does not hold, as each command says; "
        "2 wrong usage, nothing has run; 3 no answer" in words
    )
    assert words.endswith("4 a file carries no answer to be checked.")


COMMANDS = ("demo", "list", "run", "render", "export", "share", "compare", "check", "verify")


@pytest.mark.parametrize("width", [60, 71, 80])
@pytest.mark.parametrize("name", [*COMMANDS, "notebooks"])
def test_help_says_the_exit_statuses_and_breaks_lines_where_they_are_full(
    call, monkeypatch, name, width
):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    status, out, _ = call(name, "--help")
    assert status == 0
    said = re.split(r"\n[╭┌]", out)[0]
    assert "Exit status: 0 " in " ".join(said.split())
    for paragraph in re.split(r"\n\s*\n", said):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        for line, following in pairwise(lines):
            assert len(line) + 1 + len(following.split()[0]) > width - 2, (line, following)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "a\x1b[31m.yaml"],
        ["render", "a\x1b[31m\n.json"],
        ["compare", "a\u202e.yaml", "b\x9b.yaml"],
        ["share", "a\x1b].ipynb"],
        ["export", "a\x1b.yaml", "--to", "native"],
        ["notebooks", "a\x1b.ipynb"],
        ["verify", "a\x1b.ipynb"],
        ["list", "a\x1b[31m"],
        ["run", "a\x1b[31m:b"],
        ["a\x1b[31m"],
        ["render", "--\x1b[31m"],
        ["export", "a.json", "--out", "a\x1b[31m"],
    ],
)
def test_what_is_said_of_foreign_names_cannot_act_on_the_terminal(call, arguments):
    status, out, err = call(*arguments)
    assert status in (2, 3)
    assert (out + err).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("check", []),
        ("verify", []),
        ("share", []),
        ("render", []),
        ("notebooks", []),
        ("export", ["--out", "x.md"]),
        ("compare", ["gone.json"]),
    ],
)
def test_a_file_that_is_not_there_is_the_same_status_everywhere(call, command, rest):
    assert call(command, "gone.ipynb", *rest)[0] == 3


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "runbook_nb", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"runbook-nb {runbook_nb.__version__}\n"


def test_asking_for_the_version_loads_next_to_nothing():
    probe = (
        "import sys; from runbook_nb.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"typer", "rich", "click", "asyncio", "pandas", "cryptography", "yaml"}


def test_the_demonstration_loads_no_frame_and_no_kernel_package(tmp_path):
    probe = (
        "import sys; from runbook_nb.cli.main import main\n"
        "try: main(['demo', '--as-of', '2026-11-29', '--out', sys.argv[1]])\n"
        "except SystemExit: print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path)], check=True, capture_output=True, text=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"pandas", "numpy", "IPython", "ipywidgets", "nbclient", "pytest"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (runbook_nb.errors.LoadError("no\nfile", fix="look again"), "no file; look again"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (OSError(), "OSError"),
    ],
)
def test_an_error_is_told_on_one_line(error, words):
    assert one_line(error) == words
