"""Whatever is handed over: a playbook, or an error that says what is wrong; nothing else."""

from __future__ import annotations

import contextlib
import json
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks.grouped import GROUP_KEYS
from runbook_nb.playbooks.grouped import HEAD_KEYS as GROUPED_HEAD
from runbook_nb.playbooks.grouped import STEP_KEYS as GROUPED_STEP
from runbook_nb.playbooks.keys import HEAD_KEYS, OWN_STEP_KEYS, PROBE_KEYS, STEP_KEYS
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.problems import PlaybookWarning

SCALAR = st.sampled_from([None, True, 0, -1, 3, 2.5, "", " ", "a", "no", "3", "manual"])
LEAF = SCALAR | st.lists(SCALAR, max_size=2) | st.dictionaries(st.sampled_from("ab"), SCALAR)


def mapping(keys, **special):
    known = {key: special.get(key, LEAF) for key in keys}
    odd = st.dictionaries(st.sampled_from(["x-a", "hint", "", "after"]), SCALAR, max_size=1)
    return st.builds(
        lambda one, two: {**one, **two}, st.fixed_dictionaries({}, optional=known), odd
    )


def some(inner):
    return st.lists(inner, max_size=3) | LEAF


PROBE = mapping(PROBE_KEYS) | SCALAR
STEP = mapping((*STEP_KEYS, *OWN_STEP_KEYS, *GROUPED_STEP), required_probes=some(PROBE))
GROUP = mapping(GROUP_KEYS, steps=some(STEP))
DOCUMENT = mapping({*HEAD_KEYS, *GROUPED_HEAD}, steps=some(STEP), step_groups=some(GROUP))

#: Documents that are mostly right.
WORDS = st.lists(st.sampled_from(["a", "b", "x y"]), max_size=2)
FINE_STEP = st.fixed_dictionaries(
    {"id": st.sampled_from("abcdefgh"), "description": st.just("d")},
    optional={
        "expected_tools": WORDS,
        "required": st.sampled_from([True, False, "no", 1]),
        "min_tool_calls": st.sampled_from([0, "1", 2.0]),
        "max_tool_calls": st.sampled_from([None, 2, 3]),
        "required_probes": st.lists(
            st.fixed_dictionaries({"name": st.just("n"), "match": st.just("m")}), max_size=1
        ),
        "metadata": st.dictionaries(st.sampled_from("ab"), SCALAR, max_size=1),
        "x-own": SCALAR,
        "kind": st.sampled_from([None, "manual", "approval"]),
    },
)
FINE = st.fixed_dictionaries(
    {"id": st.just("x"), "name": st.just("n"), "steps": st.lists(FINE_STEP, max_size=3)},
    optional={"version": st.sampled_from(["2", "1.0"]), "tags": WORDS, "x-own": SCALAR},
)


def attempt(source, **how):
    """Give the playbook or the error, of which no other kind may come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlaybookWarning)
        try:
            return load_playbook(source, **how), None
        except PlaybookLoadError as error:
            return None, error


@settings(max_examples=100, deadline=None)
@given(DOCUMENT | FINE)
def test_any_document_loads_or_is_told_with_codes_and_places(document):
    before = json.dumps(document)
    book, error = attempt(document)
    same, told = attempt(json.dumps(document, indent=1))
    assert json.dumps(document) == before
    if error is None:
        assert book == same == load_playbook(book.to_yaml())
        return
    assert error.code
    assert str(error)
    places = [(problem.code, problem.where) for problem in error.problems]
    assert places == [(problem.code, problem.where) for problem in told.problems]
    assert len({where for _, where in places}) == len(places), "each place is told once"
    assert all(problem.line for problem in told.problems)


@settings(max_examples=100, deadline=None)
@given(FINE)
def test_what_loads_strictly_the_published_reading_loads_too(document):
    strict, _ = attempt(document)
    read, _ = attempt(document, profile="compat")
    if strict is not None:
        assert [step.model_dump() for step in read.steps] == [
            {key: value for key, value in step.model_dump().items() if key in STEP_KEYS}
            for step in strict.steps
        ]


TEXT = st.text(st.sampled_from(list("id: x\nname&*<{}[]\"'#|>-!,0\t\ufeff\x00")), max_size=40)


@settings(max_examples=200, deadline=None)
@given(TEXT | st.binary(max_size=20))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(PlaybookLoadError):
        load_playbook("\n" + text if isinstance(text, str) else text)
