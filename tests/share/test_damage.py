"""A damaged answer is held against the copy beside it, and the places that differ are named."""

import base64
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))

from forging import changed, leaves, others

import runbook_nb as rb
from runbook_nb.runbook.differing import differences
from runbook_nb.share.damage import damage_of
from runbook_nb.share.hydrate import Found
from runbook_nb.share.travelling import NAME
from runbook_nb.share.verify import verify_file

_COMMENT = re.compile(r"(<!--runbook_nb:payload/1 sha-256:[0-9a-f]{64} )([A-Za-z0-9+/=]*)(-->)")
RULES = rb.RuleSet("disk", "v1", [rb.Rule({"disk_pct": {"gt": 75.0}}, "full")], rb.Default("ok"))


@pytest.fixture
def written(tmp_path):
    rows = [{"host": "db-1", "disk_pct": 78.0}, {"host": "db-2", "disk_pct": 12.5}]
    answer = rb.triage(rows, RULES, subject="host", source="two rows")
    return answer.to_notebook(tmp_path / "a.ipynb")


def parts(path):
    document = json.loads(path.read_text("utf-8"))
    [output] = document["cells"][1]["outputs"]
    return document, output


def with_payload(path, change):
    """Change the answer in the metadata, and leave its digest."""
    document, output = parts(path)
    form = output["metadata"][NAME]
    form["payload"] = change(form["payload"])
    path.write_text(json.dumps(document), encoding="utf-8")
    [checked] = verify_file(path)
    return checked


def with_comment(path, change):
    """Change the answer in the HTML, and leave its digest."""
    document, output = parts(path)
    html = "".join(output["data"]["text/html"])

    def changed(found):
        text = change(base64.b64decode(found[2]).decode())
        return found[1] + base64.b64encode(text.encode()).decode() + found[3]

    output["data"]["text/html"] = _COMMENT.sub(changed, html)
    path.write_text(json.dumps(document), encoding="utf-8")
    [checked] = verify_file(path)
    return checked


def flipped(text):
    assert '"disk_pct":78.0' in text
    return text.replace('"disk_pct":78.0', '"disk_pct":79.0', 1)


@pytest.mark.parametrize(
    ("change", "id_", "one", "other"),
    [
        (with_payload, "form.metadata", "metadata", "HTML"),
        (with_comment, "form.comment", "HTML", "metadata"),
    ],
)
def test_the_first_places_that_differ_are_named(written, change, id_, one, other):
    checked = change(written, flipped)
    assert [claim.id for claim in checked.contradicted] == [id_]
    assert checked[id_].sentence == (
        f"{id_} is contradicted by the digest beside it: the answer in the {one} of output 1 of "
        f"cell 2 was changed after it was written; it differs from the copy in its {other} at "
        "verdicts[host=db-1].disk_pct: 79.0, there 78.0"
    )
    assert checked["counts.rows_total"].status == "confirmed"


def test_many_places_are_named_up_to_three(written):
    checked = with_payload(written, lambda text: text.replace("db-", "web-"))
    [claim] = checked.contradicted
    assert claim.difference.count(", there ") == 3
    assert claim.difference.endswith(" and more")


def test_a_digest_that_was_changed_is_told_from_an_answer_that_was(written):
    document, output = parts(written)
    form = output["metadata"][NAME]
    form["sha-256"] = "0" * 64
    written.write_text(json.dumps(document), encoding="utf-8")
    [claim] = verify_file(written)[0].contradicted
    assert claim.difference.endswith("the same as the copy in its HTML, and its digest was changed")


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: "[" * 9])
def test_what_can_no_longer_be_read_says_where_it_can_be(written, change):
    [claim] = with_payload(written, change).contradicted
    assert claim.difference == (
        "the answer in the metadata of output 1 of cell 2 cannot be read, or not by this "
        "version; the copy in its HTML can be"
    )


def test_where_there_is_no_copy_nothing_is_said_of_one(tmp_path, written):
    document, output = parts(written)
    del output["metadata"][NAME]
    written.write_text(json.dumps(document), encoding="utf-8")
    [claim] = with_comment(written, flipped).contradicted
    assert claim.difference == (
        "the answer in the HTML of output 1 of cell 2 was changed after it was written"
    )


def test_copies_too_deep_to_be_compared_are_not():
    deep, other = {}, {"a": 1}
    for _ in range(5_000):
        deep, other = {"a": deep}, {"a": other}
    one = Found(place="the page", payload=None, left=deep)
    said = damage_of(one, Found(place="the page", payload=other))
    assert said == "the answer in the page was changed after it was written"


@given(st.data())
def test_any_leaf_that_is_changed_is_one_place(data):
    wire = {
        "envelope": {"result": {"verdicts": [{"host": "a", "n": 1, "note": None}], "rows": [1, 2]}}
    }
    place, value = data.draw(st.sampled_from(list(leaves(wire))))
    other = data.draw(st.sampled_from(others(value)))
    found = list(differences(changed(wire, place, other), wire))
    assert len(found) == 1, found
    assert list(differences(wire, wire)) == []


def test_lists_of_another_length_are_one_place():
    assert list(differences({"a": [1, 2]}, {"a": [1]})) == ["a: 2 entries, there 1"]
    assert list(differences({"a": 1}, {})) == ["a: 1, there nothing"]
