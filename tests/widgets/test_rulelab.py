"""The rule lab without a browser: what it judges, what it shows, what it answers."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from decimal import Decimal
from importlib.resources import files
from shutil import which

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from untrusted import HINTS, dropped, reading, sanitized

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, NotCarried, RuleError
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.rules.operators import compile_condition
from runbook_nb.widgets import labfields, labtold
from runbook_nb.widgets.base import MAX_STATE
from runbook_nb.widgets.rulelab import RuleLab

HOSTILE = "</style><img src=x onerror=alert(1)>\u202e|"
ROWS = [
    {"host": "a", "known": True, "days": 14, "tier": "x", "keep": 30},
    {"host": "b", "known": True, "days": 9, "tier": "y", "keep": 3},
    {"host": "c", "known": True, "days": 40, "tier": "x", "keep": 30},
    {"host": "d", "known": True, "days": 2, "tier": "y", "keep": 7},
    {"host": "e", "known": False, "days": None, "tier": "x", "keep": 30},
    {"host": "f", "known": True, "days": 7, "tier": "x", "keep": 30},
]


def posture(days=7, version="v3", *more, unit="days"):
    return rb.RuleSet(
        "health-signal",
        version,
        [
            rb.Rule({"known": {"eq": False}}, "declined", "unreadable"),
            rb.Rule({"days": {"gt": days}}, "unprotected", "too old", unit=unit),
            *more,
        ],
        rb.Default("protected", "in time"),
    )


def answer(rules=None, rows=ROWS, **more):
    return rb.triage(rows, rules or posture(), subject="host", source="rows", **more)


def flips(lab):
    return [(flip.subject, flip.before, flip.after) for flip in lab.comparison.flips()]


def said(lab, what, rule=0, *args):
    """Send what the script sends."""
    return lab.answer(
        {"ask": "edit", "id": "1", "about": {"what": what, "rule": rule, "args": args}}
    )


# -- judging --------------------------------------------------------------------------------------


def test_a_changed_limit_shows_the_subjects_that_changed():
    lab = rb.RuleLab(answer())
    assert str(lab) == "RuleLab health-signal v3 -> draft · no verdict changes (6 unchanged)"
    lab.set_limit(2, "days", "gt", 14)
    assert flips(lab) == [
        ("a", "unprotected", "protected"),
        ("b", "unprotected", "protected"),
    ]
    assert str(lab) == "RuleLab health-signal v3 -> draft · 2 of 6 verdicts change (4 unchanged)"
    assert lab.fired == (1, 1)
    assert lab.fired_before == (1, 3)
    assert lab.comparison.counts() == {
        "protected": (2, 4),
        "unprotected": (3, 1),
        "declined": (1, 1),
    }


def test_no_source_is_called_again():
    calls = []
    tool = rb.define_tool(
        name="inventory",
        description="Rows.",
        execute=lambda args: calls.append(1) or rb.coverage({"rows": ROWS}, checked=["it"]),
    )
    rules = posture()

    def procedure(tools):
        async def load(scope):
            scope["rows"] = (await tools.call("inventory", {}))["result"]["rows"]

        return (
            rb.flow_chart("c", load, id="load")
            .add_judge_each(
                "Judge",
                id="each",
                items=lambda s: s["rows"],
                rules=rules,
                max_branches=9,
                into="out",
                subject="host",
            )
            .add_function("Collect", lambda s: s.set("verdicts", s["out"].verdict_rows()), id="end")
            .build()
        )

    runbook = rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=procedure,
        rules=rules,
        result_kind="verdict/x",
        verdicts={"decider": "Verdict"},
        composed_of=["inventory"],
    )
    lab = RuleLab(rb.Toolbox([tool, runbook]).call_sync("r", {}))
    lab.set_limit(2, "days", "gt", 1)
    lab.move(2, 1)
    assert calls == [1]
    assert lab.comparison.changed == 2


@pytest.mark.parametrize("form", ["rows", "columns", "pandas", "arrow"])
def test_rows_of_every_sort_are_judged_by_given_rules(form):
    made = ROWS
    if form == "columns":
        made = {key: [row[key] for row in ROWS] for key in ROWS[0]}
    if form == "pandas":
        made = pytest.importorskip("pandas").DataFrame(ROWS)
    if form == "arrow":
        made = pytest.importorskip("pyarrow").Table.from_pylist(ROWS)
    lab = posture().lab(made, subject="host")
    lab.set_limit(2, "days", "gt", 14)
    assert [flip.subject for flip in lab.comparison.flips()] == ["a", "b"]


def test_rows_without_a_name_are_numbered():
    lab = RuleLab(ROWS, posture())
    lab.set_limit(2, "days", "gt", 14)
    assert [flip.subject for flip in lab.comparison.flips()] == ["row 0", "row 1"]


def test_what_cannot_be_a_lab_says_what_to_write():
    with pytest.raises(DefinitionError, match="the lab changes a RuleSet, not dict"):
        RuleLab(ROWS, {"name": "r"})
    with pytest.raises(DefinitionError, match="rows carry no rules"):
        RuleLab(ROWS)
    with pytest.raises(DefinitionError, match="did you mean 'host'"):
        RuleLab(ROWS, posture(), subject="hosts")
    with pytest.raises(NotCarried, match="recorded facts are not carried"):
        RuleLab(rb.Envelope.from_dict(answer().to_dict()))


def test_other_rules_may_begin_the_draft():
    lab = RuleLab(answer(), posture(20, "v4"))
    assert lab.comparison.changed == 0
    assert lab.told["before"] == "v4"
    assert lab.notes == ()


def test_rules_changed_under_their_version_are_spoken():
    lab = posture(20).lab(answer())
    assert lab.notes == ("judged under health-signal v3, content differs",)
    assert lab.told["notes"] == ["judged under health-signal v3, content differs"]
    assert "content differs" in lab._repr_mimebundle_()[0][TEXT]


def test_who_was_never_reached_is_not_compared():
    lab = RuleLab(answer(max_branches=4))
    lab.set_limit(2, "days", "gt", 1)
    assert lab.comparison.compared == 4
    assert lab.told["judged"] == 4
    assert lab.told["histogram"]["total"] == 4
    assert lab.told["not_compared"] == [
        {"total": 2, "words": "never reached", "why": "past the cap of 4"}
    ]


def test_a_copy_says_what_it_cannot_judge():
    lab = RuleLab(rb.Envelope.from_dict(answer().to_dict(dossier=True)))
    lab.set_limit(2, "days", "gt", 14)
    assert lab.comparison.changed == 2
    lab.add({"tier": {"eq": "x"}}, "unprotected")
    (wrong,) = lab.edited.wrong
    assert wrong.wrong.what == "no subject has a recorded key 'tier'"


# -- the form -------------------------------------------------------------------------------------


def test_a_subject_that_is_the_index_is_pointed_at():
    frame = pd.DataFrame(ROWS).set_index("host")
    with pytest.raises(DefinitionError, match=r"'host' is the frame's index.*reset_index\(\)"):
        RuleLab(frame, posture(), subject="host")


def test_a_key_nobody_has_is_not_applied_and_the_near_one_is_offered():
    lab = RuleLab(answer())
    number = lab.add({"kep": {"lt": 7}}, "unprotected")
    assert number == 3
    assert lab.comparison.changed == 0
    assert str(lab).endswith("· 1 rule not applied")
    wrong = lab.told["rules"][2]["wrong"]
    assert wrong == {
        "what": "no subject has the key 'kep'",
        "key": "kep",
        "instead": "keep",
        "kept": False,
    }
    lab.set_key(3, "kep", wrong["instead"])
    assert flips(lab) == [] or flips(lab) == [("d", "protected", "unprotected")][:0]
    lab.set_limit(3, "keep", "lt", 8)
    assert flips(lab) == [("d", "protected", "unprotected")]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("eighty", 'the limit "eighty" is text, and days is a number'),
        (
            "80",
            'the limit "80" is text, and days is a number; write 80 as the limit, without quotes',
        ),
        (True, "the limit true is true or false, and days is a number"),
        (
            dt.date.fromisoformat("2026-01-02"),
            "the limit 2026-01-02 is a date, and days is a number",
        ),
    ],
)
def test_a_limit_of_another_type_than_the_values_is_not_applied(value, what):
    lab = RuleLab(answer())
    op = "eq" if value is True else "gt"
    if op == "eq":
        lab.set_operator(2, "days", "gt", "eq")
    lab.set_limit(2, "days", op, value)
    (rule,) = lab.edited.wrong
    assert (rule.wrong.what, rule.wrong.key) == (what, "days")
    assert rule.good.when["days"][op] == 7
    assert str(lab).endswith("· 1 rule not applied")
    assert lab.told["rules"][1]["wrong"]["what"] == what
    assert lab.told["can_keep"] is False
    with pytest.raises(RuleError, match="rule 2 is not applied: the limit"):
        lab.keep("v4")
    lab.set_limit(2, "days", op, 14)
    assert lab.edited.wrong == ()
    assert lab.keep("v4").rules[1].when["days"][op] == 14


def test_a_limit_of_a_type_that_some_values_have_is_applied():
    rows = [{"host": "a", "days": 9}, {"host": "b", "days": "many"}]
    lab = RuleLab(rows, posture(), subject="host")
    lab.set_operator(2, "days", "gt", "eq")
    lab.set_limit(2, "days", "eq", "many")
    assert lab.edited.wrong == ()
    lab.set_operator(2, "days", "eq", "in")
    lab.set_limit(2, "days", "in", ["few", 9])
    assert lab.edited.wrong == ()


def test_where_there_are_no_values_a_limit_is_of_the_type_it_was():
    rows = [{"host": "a", "days": None}, {"host": "b", "days": None}]
    lab = RuleLab(rows, posture(), subject="host")
    lab.set_limit(2, "days", "gt", "eighty")
    (rule,) = lab.edited.wrong
    assert rule.wrong.what == 'the limit "eighty" is text, and it was a number'
    lab.set_limit(2, "days", "gt", 80)
    assert lab.edited.wrong == ()


def test_the_limit_that_the_rules_began_with_may_stay_whatever_it_is():
    lab = RuleLab(answer(posture("7")))
    lab.set_label(2, "far too old")
    assert lab.edited.wrong == ()
    lab.set_limit(2, "days", "gt", 7)
    assert lab.edited.wrong == ()


def test_a_key_of_another_type_than_its_limit_is_not_applied():
    lab = RuleLab(answer())
    lab.set_key(2, "days", "tier")
    assert lab.edited.wrong[0].wrong.what == "the limit 7 is a number, and tier is text"


def test_presence_and_lists_need_no_type():
    lab = RuleLab([{"host": "a", "days": 9, "tags": ["x"]}], posture(), subject="host")
    lab.set_operator(2, "days", "gt", "exists")
    assert lab.edited.wrong == ()
    lab.add({"tags": {"contains": 7}}, "unprotected")
    assert lab.edited.wrong == ()


def test_an_edit_that_cannot_be_used_leaves_the_rule_as_it_was():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    assert said(lab, "limit", 1, "days", "gt", "number", "many")["answer"] == {"done": False}
    assert lab.comparison.changed == 2
    wrong = lab.told["rules"][1]["wrong"]
    assert (wrong["what"], wrong["kept"]) == ("'many' is not a number", True)
    assert said(lab, "limit", 1, "days", "gt", "number", "9")["answer"] == {"done": True}
    assert lab.told["rules"][1]["wrong"] is None
    assert lab.comparison.changed == 1


def test_every_edit_of_the_script_is_a_method():
    lab = RuleLab(answer())
    for what, args in [
        ("limit", ("days", "gt", "number", "14")),
        ("operator", ("days", "gt", "gte")),
        ("verdict", ("late",)),
        ("label", ("past the limit",)),
        ("key", ("days", "keep")),
        ("move", (1,)),
    ]:
        assert said(lab, what, 1, *args) == {"id": "1", "answer": {"done": True}}
    assert lab.draft.rules[0] == rb.Rule({"keep": {"gte": 14}}, "late", "past the limit", "days")
    assert lab.answer({"ask": "edit", "id": "2", "about": {"what": "default", "branch": "fine"}})
    assert lab.draft.default == rb.Default("fine", "in time")
    assert lab.answer({"ask": "edit", "id": "3", "about": {"what": "add"}})["answer"]["done"]
    assert said(lab, "remove", 2)["answer"]["done"]
    assert lab.answer({"ask": "edit", "id": "4", "about": {"what": "reset"}})["answer"]["done"]
    assert lab.draft.rules == posture().rules
    fault = said(lab, "explode")["fault"]
    assert fault["what"] == "a rule lab cannot change 'explode'"


def test_a_new_rule_begins_with_a_condition_nobody_meets():
    lab = RuleLab(answer())
    lab.add()
    assert lab.comparison.changed == 0
    assert dict(lab.draft.rules[2].when) == {"keep": {"gt": 30}}
    assert lab.told["rules"][2]["silent"] == "never fired: no subject meets it"


@pytest.mark.parametrize(
    ("kind", "typed", "value"),
    [
        ("number", "14", 14),
        ("number", " -1.5 ", -1.5),
        ("bool", True, True),
        ("presence", False, False),
        ("text", " x", " x"),
        ("date", "2026-11-30", dt.date(2026, 11, 30)),
        ("datetime", "2026-11-30T08:00+00:00", dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC)),
        ("span", "90", dt.timedelta(seconds=90)),
        ("span", "3456000.000001", dt.timedelta(days=40, microseconds=1)),
        ("decimal", "0.3", Decimal("0.3")),
        ("list", [{"kind": "text", "value": "a"}, {"kind": "number", "value": "7"}], ["a", 7]),
        (
            "between_number",
            [{"kind": "number", "value": "1"}, {"kind": "number", "value": "5"}],
            [1, 5],
        ),
    ],
)
def test_what_is_typed_becomes_a_limit_of_its_kind(kind, typed, value):
    found = labfields.limit_of(kind, typed)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        ("number", "", "a number is missing"),
        ("number", "7 days", "'7 days' is not a number"),
        ("date", "yesterday", "'yesterday' is not a date"),
        ("datetime", "noon", "'noon' is not a date with a time"),
        ("span", "an hour", "'an hour' is not a number of seconds"),
        ("fixed", "{}", "cannot be typed"),
        *(
            (kind, text, f"'{text}' is not a number")
            for kind in ("number", "decimal", "span")
            for text in ("inf", "-inf", "nan", "1e400")
        ),
        ("number", "9" * 400, "is not a number"),
    ],
)
def test_what_is_not_of_its_kind_says_so(kind, typed, message):
    with pytest.raises(ValueError, match=message):
        labfields.limit_of(kind, typed)


LIMITS = st.one_of(
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.text(max_size=5),
    st.dates(),
    st.timedeltas(dt.timedelta(-(10**8)), dt.timedelta(10**8)),
    st.decimals(-(10**9), 10**9, places=4),
    st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=4),
)


@settings(max_examples=100)
@given(LIMITS)
def test_a_limit_that_was_shown_is_read_back_as_it_was(value):
    read = labfields.limit_of(labfields._field(value), labfields.typed_text(value))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("ends", "typed"),
    [
        ([dt.timedelta(days=40, seconds=1), dt.timedelta(days=50)], "4320001"),
        ([Decimal("0.1"), Decimal("0.3")], "0.4"),
        ([0.1, 0.3], "0.4"),
    ],
    ids=["span", "decimal", "float"],
)
def test_the_other_end_of_a_range_stays_as_it_was(ends, typed):
    rules = rb.RuleSet("r", "1", [rb.Rule({"d": {"between": ends}}, "in")], "out")
    lab = RuleLab({"d": ends}, rules)
    (condition,) = lab.told["rules"][0]["conditions"]
    lower, upper = condition["value"]
    said(lab, "limit", 0, "d", "between", condition["kind"], [lower, {**upper, "value": typed}])
    low, high = lab.draft.rules[0].when["d"]["between"]
    assert low == ends[0]
    assert type(low) is type(high) is type(ends[0])
    assert high > ends[1]


def test_a_decimal_limit_has_a_slider_and_stays_a_decimal():
    rules = rb.RuleSet("r", "1", [rb.Rule({"d": {"gt": Decimal("0.25")}}, "in")], "out")
    lab = RuleLab({"d": [Decimal("0.1"), Decimal("0.3")]}, rules)
    (condition,) = lab.told["rules"][0]["conditions"]
    assert condition["kind"] == "decimal"
    assert condition["slider"] is not None
    said(lab, "limit", 0, "d", "gt", "decimal", "0.3")
    assert lab.comparison.changed == 1  # as a float it would lie below the decimal 0.3


def test_a_number_without_end_marks_the_rule_and_nothing_fails():
    lab = RuleLab(answer())
    assert said(lab, "limit", 1, "days", "gt", "number", "inf")["answer"] == {"done": False}
    assert lab.told["rules"][1]["wrong"]["what"] == "'inf' is not a number"
    assert lab.told["headline"] == "No verdict changes"


def test_the_form_has_a_field_for_every_kind_of_limit():
    rules = rb.RuleSet(
        "k",
        "1",
        [
            rb.Rule(
                {
                    "n": {"gt": 7},
                    "b": {"eq": True},
                    "t": {"eq": "x"},
                    "l": {"in": ["a"]},
                    "d": {"gt": dt.date(2026, 1, 1)},
                    "s": {"lt": dt.timedelta(1)},
                    "r": {"between": [1, 5]},
                    "p": {"exists": True},
                    "m": {"eq": {"k": 1}},
                },
                "x",
            )
        ],
        "z",
    )
    (rule,) = RuleLab([{"n": 1}], rules).told["rules"]
    assert {one["key"]: one["kind"] for one in rule["conditions"]} == {
        "n": "number",
        "b": "bool",
        "t": "text",
        "l": "list",
        "d": "date",
        "s": "span",
        "r": "between_number",
        "p": "presence",
        "m": "fixed",
    }


def test_a_slider_reaches_over_the_values_and_marks_the_old_limit():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    slider = lab.told["rules"][1]["conditions"][0]["slider"]
    assert slider == {"min": 2, "max": 40, "step": 2, "old": 7} or (
        slider["min"] <= 2 and slider["max"] >= 40 and slider["old"] == 7
    )


def test_a_function_rule_is_shown_and_left_alone():
    def late(facts):
        return (facts["days"] or 0) > 7

    rules = rb.RuleSet("f", "1", [rb.Rule(late, "old")], "new")
    lab = RuleLab(ROWS, rules)
    assert lab.told["rules"][0]["function"] == "late()"
    lab.set_verdict(1, "older")
    assert lab.comparison.changed == 3
    with pytest.raises(RuleError, match="is a function"):
        lab.text("python")


# -- where no rule decides ------------------------------------------------------------------------


def outer():
    return rb.RuleSet(
        "health-signal",
        "v3",
        [rb.Rule({"days": {"gt": 7}}, "unprotected", unit="days")],
        rb.Default("protected", "in time"),
        unreadable=rb.Unreadable("declined", "no age"),
        outside=[rb.Outside({"tier": {"in": ["z"]}}, "hosts of tier z", "nobody asks")],
    )


def test_what_an_unreadable_value_does_is_changed_like_the_rest():
    lab = RuleLab(ROWS, outer(), subject="host")
    assert lab.told["unreadable"] == {
        "then": "declined",
        "label": "no age",
        "fired": 1,
        "before": 1,
    }
    said(lab, "unreadable")
    assert lab.answer(
        {"ask": "edit", "id": "1", "about": {"what": "unreadable", "branch": "unprotected"}}
    )["answer"] == {"done": True}
    assert flips(lab) == [("e", "declined", "unprotected")]
    assert lab.told["is_changed"]
    lab.set_unreadable(label="nobody knows its age")
    assert lab.keep().unreadable == rb.Unreadable("unprotected", "nobody knows its age")
    lab.set_unreadable("skip")
    assert flips(lab) == [("e", "declined", "protected")]
    assert lab.told["unreadable"]["label"] is None
    lab.set_unreadable(label="heard by nobody")
    assert lab.draft.unreadable == "skip"
    lab.set_unreadable("declined")
    assert lab.comparison.changed == 0
    lab.reset()
    assert not lab.told["is_changed"]


@pytest.mark.parametrize("branch", ["raise", ""])
def test_what_cannot_be_judged_with_is_refused(branch):
    lab = RuleLab(ROWS, outer(), subject="host")
    with pytest.raises((DefinitionError, RuleError)):
        lab.set_unreadable(branch)
    assert lab.draft.unreadable == outer().unreadable


def test_ground_outside_is_changed_like_the_rest():
    lab = RuleLab(ROWS, outer(), subject="host")
    (ground,) = lab.told["outside"]
    assert (ground["id"], ground["what"], ground["why"]) == (-1, "hosts of tier z", "nobody asks")
    (one,) = ground["conditions"]
    assert (one["key"], one["op"], one["kind"]) == ("tier", "in", "list")
    said(lab, "limit", -1, "tier", "in", "list", [{"kind": "text", "value": "x"}])
    assert {new for _, _, new in flips(lab)} == {"declined"}
    assert len(flips(lab)) == 3  # of four with tier x one was declined before
    said(lab, "what", -1, "hosts of tier x")
    said(lab, "why", -1, "they are gone")
    (kept,) = lab.keep().outside
    assert (kept.what, kept.why) == ("hosts of tier x", "they are gone")
    assert list(kept.where["tier"]["in"]) == ["x"]
    lab.reset()
    assert lab.draft.outside == outer().outside


@pytest.mark.parametrize(
    ("what", "args"),
    [
        ("limit", ("tier", "in", "number", "seven")),
        ("limit", ("tier", "eq", "text", "x")),
        ("limit", ("tier", "in", "list", [{"kind": "number", "value": "7"}])),
        ("what", ("",)),
        ("move", (1,)),
    ],
)
def test_ground_that_cannot_be_used_is_refused_and_stays(what, args):
    lab = RuleLab(ROWS, outer(), subject="host")
    assert "fault" in said(lab, what, -1, *args)
    assert lab.draft.outside == outer().outside
    assert "fault" in said(lab, "what", -2, "x")


def test_ground_outside_that_a_policy_hides_is_not_written_out():
    rules = rb.RuleSet(
        "r",
        "v1",
        [rb.Rule({"days": {"gt": 7}}, "old")],
        "fresh",
        outside=[rb.Outside({"tier": {"eq": "s3cret"}}, "it", "so")],
    )
    lab = RuleLab(answer(redact={"keys": ["tier"]}), rules)
    assert "s3cret" not in json.dumps(lab.told)
    with pytest.raises(RuleError, match="the limit of tier is hidden"):
        lab.text("yaml")


# -- more than a page -----------------------------------------------------------------------------


def test_rules_are_gone_through_a_page_at_a_time():
    many = [rb.Rule({"keep": {"eq": 100 + n}}, f"v{n}") for n in range(150)]
    lab = RuleLab(ROWS, posture(7, "v3", *many), subject="host")
    shown = lab.told
    assert (shown["first"], len(shown["rules"]), shown["more"], shown["total"]) == (0, 100, 52, 152)
    assert lab.answer({"ask": "page", "id": 1, "about": {"first": 100}})["answer"] == {"first": 100}
    assert (lab.told["first"], len(lab.told["rules"]), lab.told["more"]) == (100, 52, 0)
    last = lab.told["rules"][-1]["id"]
    said(lab, "label", last, "the last one")
    assert lab.draft.rules[151].label == "the last one"
    said(lab, "move", last, 1)
    assert lab.draft.rules[0].label == "the last one"
    for asked in (-5, 10_000):
        lab.answer({"ask": "page", "id": 1, "about": {"first": asked}})
        assert lab.told["rules"]
    lab.answer({"ask": "page", "id": 1, "about": {"first": 0}})
    said(lab, "add")
    assert lab.told["first"] == 100  # where the added one is
    assert lab.told["rules"][-1]["before"] is None
    for _ in range(60):
        lab.remove(len(lab.edited.rules))
    assert lab.told["rules"]


def test_a_list_too_long_for_the_form_says_how_it_is_changed():
    rules = rb.RuleSet.bare([rb.Rule({"days": {"in": list(range(300))}}, "old")], "fresh")
    (one,) = RuleLab(ROWS, rules, subject="host").told["rules"][0]["conditions"]
    assert one["kind"] == "fixed"
    assert one["value"].endswith("… (20 of 300 shown)")
    assert one["instead"] == "change it by lab.set_limit(1, 'days', 'in', …)"


# -- the result -----------------------------------------------------------------------------------


def test_the_histogram_is_of_the_limit_changed_last():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    spread = lab.told["histogram"]
    assert spread["key"] == "days"
    assert (spread["new"]["text"], spread["old"]["text"], spread["between"]) == ("14", "7", 2)
    assert sum(spread["counts"]) == spread["total"] == 5
    assert spread["unread"] == 1
    assert (
        spread["words"] == "5 subjects by days, 1 not recorded; right of the limit is unprotected"
    )
    lab.add({"keep": {"lt": 5}}, "unprotected")
    lab.set_limit(3, "keep", "lt", 8)
    assert lab.told["histogram"]["key"] == "keep"
    assert lab.told["histogram"]["old"] is None


#: Conditions on ``days`` before and after, with how many of 2, 7, 9, 14, 40 they judge otherwise.
MOVED = [
    ("gt", 7, "gt", 14, 2),
    ("gt", 7, "gte", 14, 1),  # 9 alone: 14 meets both
    ("gt", 7, "gte", 7, 1),  # 7 itself
    ("gte", 14, "gt", 7, 1),
    ("lt", 9, "lt", 14, 1),
    ("lte", 9, "lt", 9, 1),
    ("lte", 7, "lte", 9, 1),
    ("gt", 7, "lt", 7, 0),  # all but 7 change; none of them since it lies between
    ("between", [7, 14], "between", [9, 14], 1),
    ("between", [7, 14], "between", [7, 9], 1),
    ("between", [7, 14], "between", [7, 40], 1),
    ("gt", 7, "between", [7, 14], 0),
]


@pytest.mark.parametrize(("op", "limit", "new_op", "new", "count"), MOVED)
def test_the_bracket_counts_whom_the_two_limits_judge_otherwise(op, limit, new_op, new, count):
    rules = rb.RuleSet("r", "v1", [rb.Rule({"days": {op: limit}}, "in")], "out", unreadable="skip")
    lab = RuleLab(ROWS, rules, subject="host")
    if op != new_op:
        lab.set_operator(1, "days", op, new_op)
    lab.set_limit(1, "days", new_op, new)
    spread = lab.told["histogram"]
    assert spread["between"] == count
    if count:
        assert count == lab.comparison.changed
    meets = compile_condition(new_op, new)
    middle = 0 if spread["centred"] else (spread["edges"][1] - spread["edges"][0]) / 2
    assert spread["inside"] == [meets(edge + middle) == 1 for edge in spread["edges"][:-1]]
    assert "between the limits is in" in spread["words"] or new_op != "between"


def test_of_a_pair_the_end_that_was_changed_is_looked_at():
    rules = rb.RuleSet("r", "v1", [rb.Rule({"days": {"between": [7, 14]}}, "in")], "out")
    lab = RuleLab(ROWS, rules, subject="host")
    ends = lambda: [(lab.told["histogram"][one] or {}).get("text") for one in ENDS]  # noqa: E731
    assert ends() == ["7", "7", "14"]
    lab.set_limit(1, "days", "between", [7, 20])
    assert ends() == ["20", "14", "7"]
    lab.set_limit(1, "days", "between", [3, 20])
    assert ends() == ["3", "7", "20"]


ENDS = ("new", "old", "further")


def test_a_line_stands_between_bars_of_single_numbers():
    """What lies on the limit is left of the line of ``gt``, and right of that of ``gte``."""
    lab = RuleLab(answer())
    spread = lab.told["histogram"]
    width = spread["edges"][1] - spread["edges"][0]
    assert spread["new"]["text"] == "7"
    assert spread["centred"] == (width == 1)
    few = RuleLab([{"d": n} for n in range(9)], rb.RuleSet.bare([rb.Rule({"d": {"gt": 4}}, "in")]))
    assert few.told["histogram"]["new"] == {"at": 5.0, "text": "4"}
    few.set_operator(1, "d", "gt", "gte")
    assert few.told["histogram"]["new"] == {"at": 4.0, "text": "4"}


def test_a_slider_says_what_lies_beyond_it():
    rows = [{"d": n % 10} for n in range(99)] + [{"d": 90_000}, {"d": 1_000}]
    lab = RuleLab(rows, rb.RuleSet.bare([rb.Rule({"d": {"gt": 4}}, "in")], "out"))
    slider = lab.told["rules"][0]["conditions"][0]["slider"]
    assert slider["max"] < 1_000
    assert slider["beyond"] == "2 above, to 90000"
    lab.set_limit(1, "d", "gt", 90_000)
    slider = lab.told["rules"][0]["conditions"][0]["slider"]
    assert slider["max"] >= 90_000
    assert slider["beyond"] == ""


def test_rows_on_the_edge_are_named_with_their_distance():
    lab = RuleLab(answer())
    assert [(one["subject"], one["distance"], one["branch"]) for one in lab.told["near"]] == [
        ("d", "5 below", "protected"),
        ("f", "on the limit", "protected"),
        ("b", "2 above", "unprotected"),
        ("a", "7 above", "unprotected"),
        ("c", "33 above", "unprotected"),
    ]


def test_rules_that_never_fire_say_what_takes_their_subjects():
    late = rb.Rule({"days": {"gt": 30}, "tier": {"eq": "x"}}, "late")
    lab = RuleLab(answer(), None)
    lab.add(late.when, "late")
    assert [one.words for one in lab.silent] == [
        "never fired: rule 2 takes the subject that meets it"
    ]
    assert lab.told["rules"][2]["silent"] == "never fired: rule 2 takes the subject that meets it"
    lab.move(3, 2)
    assert lab.silent == ()
    assert flips(lab) == [("c", "unprotected", "late")]


def test_lists_are_capped_and_the_state_is_small():
    name = "x" * 400
    rows = [{"host": f"h{n}{name}", "known": True, "days": n % 40, "keep": n} for n in range(3000)]
    many = [rb.Rule({"keep": {"eq": 100 + n}}, f"v{n}", "why " * 90) for n in range(150)]
    lab = RuleLab(rows, posture(7, "v3", *many), subject="host")
    lab.set_limit(2, "days", "gt", 20)
    assert len(lab.told["flips"]) == labtold.FLIPS
    assert lab.comparison.changed > labtold.FLIPS
    assert len(lab.told["rules"]) == labtold.RULES
    assert lab.told["more"] == 52
    state = {key: value for key, value in lab.get_state().items() if key != "layout"}
    assert len(json.dumps(state).encode()) <= MAX_STATE


@pytest.mark.parametrize(
    "limit",
    [
        {"in": [f"element number {n}" for n in range(100)]},
        {"in": ["x" * 900] * 100},
        {"eq": "x" * 9000},
        {"in": list(range(1000))},
    ],
    ids=["lists", "long lists", "texts", "endless lists"],
)
def test_the_state_is_small_whatever_the_limits_are(limit):
    rules = [rb.Rule({"tier": limit, "keep": {"eq": n}}, "x", f"{n}") for n in range(150)]
    lab = RuleLab(answer(posture(7, "v3", *rules)))
    state = {key: value for key, value in lab.get_state().items() if key != "layout"}
    assert len(json.dumps(state).encode()) <= MAX_STATE
    assert len(lab.told["rules"]) + lab.told["more"] == 152
    told = lab.told["rules"][5]["conditions"][0]
    assert told["kind"] == "fixed"
    assert told["value"].endswith(" shown)")


def test_a_list_that_is_too_long_says_how_much_of_it_is_shown():
    rules = posture(7, "v3", rb.Rule({"keep": {"in": list(range(101))}}, "x"))
    (condition,) = RuleLab(answer(rules)).told["rules"][2]["conditions"]
    assert condition["kind"] == "fixed"
    assert condition["value"].startswith("0, 1, 2, ")
    assert condition["value"].endswith(" … (20 of 101 shown)")
    rules = posture(7, "v3", rb.Rule({"keep": {"in": list(range(100))}}, "x"))
    (condition,) = RuleLab(answer(rules)).told["rules"][2]["conditions"]
    assert (condition["kind"], len(condition["value"])) == ("list", 100)


def test_equal_labs_have_equal_state():
    one, other = RuleLab(answer()), RuleLab(answer())
    for lab in (one, other):
        lab.set_limit(2, "days", "gt", 14)
    assert one.told == other.told
    assert one._repr_mimebundle_(exclude=["application/vnd.jupyter.widget-view+json"]) == (
        other._repr_mimebundle_(exclude=["application/vnd.jupyter.widget-view+json"])
    )


def test_a_hundred_thousand_subjects_are_judged_by_columns(calls_of):
    def work(many):
        columns = {
            "host": [str(n) for n in range(many)],
            "known": [True] * many,
            "days": [n % 30 for n in range(many)],
        }
        lab = RuleLab(columns, posture(), subject="host")
        lab.set_limit(2, "days", "gt", 9)
        return calls_of(lambda: lab.set_limit(2, "days", "gt", 14))

    assert work(20_000) < work(2_000) + 200


# -- what is hidden -------------------------------------------------------------------------------


def test_what_a_policy_hides_is_in_no_state_of_it():
    rows = [{"host": "a", "pin": 4711, "days": 9}, {"host": "b", "pin": 9999, "days": 1}]
    pin = rb.Rule({"pin": {"gt": 5000}}, "high", "above the pin")
    rules = rb.RuleSet("p", "v1", [pin, rb.Rule({"days": {"gt": 7}}, "old")], "low")
    lab = RuleLab(answer(rules, rows, redact={"keys": ["pin"]}))
    assert lab.told["rules"][0]["conditions"][0]["kind"] == "hidden"
    lab.set_limit(2, "days", "gt", 0)
    lab.add({"pin": {"lt": 4000}}, "low")
    texts = [json.dumps(lab.told), str(lab), *map(str, lab._repr_mimebundle_()[0].values())]
    for text in texts:
        assert not any(secret in text for secret in ("4711", "9999", "5000"))
    assert {one["words"] for one in lab.told["not_compared"]} == {"cannot be re-judged: hidden"}
    with pytest.raises(RuleError, match="hidden by a policy"):
        lab.text("yaml")
    assert "pin" not in lab.told["keys"]


# -- keeping --------------------------------------------------------------------------------------


def test_a_change_is_kept_under_a_new_version_and_no_other(tmp_path):
    path = tmp_path / "posture.yaml"
    posture().save(path)
    lab = RuleLab(answer(), path=path)
    lab.set_limit(2, "days", "gt", 14)
    with pytest.raises(RuleError, match="already the version of other content"):
        lab.keep("v3")
    assert rb.RuleSet.load(path) == posture()
    kept = lab.keep()
    assert kept == posture(14, "v4")
    assert lab.kept == kept
    assert rb.RuleSet.load(path) == kept
    assert lab.told["kept"] == "v4"
    assert lab.told["next"] == "v5"


def test_a_limit_that_is_hidden_is_in_no_file(tmp_path):
    path = tmp_path / "rules.yaml"
    rows = [{"host": "a", "pin": 4711, "days": 9}, {"host": "b", "pin": 9999, "days": 1}]
    pin = rb.Rule({"pin": {"gt": 5000}}, "high", "above the pin")
    rules = rb.RuleSet("p", "v1", [pin, rb.Rule({"days": {"gt": 7}}, "old")], "low")
    lab = RuleLab(answer(rules, rows, redact={"keys": ["pin"]}), path=path)
    lab.set_label(1, "changed")
    with pytest.raises(RuleError, match="limit of pin is hidden by a policy") as refused:
        lab.keep("v2")
    assert refused.value.code == "hidden_limit"
    assert not path.exists()
    assert lab.kept is None


def test_a_version_is_that_of_the_default_too():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    kept = lab.keep("v4")
    assert rb.RuleSet.loads(lab.text("yaml")) == kept
    lab.set_default("brandnew")
    assert rb.RuleSet.loads(lab.text("yaml")).version == "v5"


def test_a_draft_that_is_not_applied_is_no_text():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", "soon")
    with pytest.raises(RuleError, match="rule 2 is not applied") as refused:
        lab.text()
    assert refused.value.code == "not_applied"


def test_a_version_that_could_not_be_written_is_not_kept(tmp_path):
    lab = RuleLab(answer(), path=tmp_path / "missing" / "rules.yaml")
    lab.set_limit(2, "days", "gt", 14)
    with pytest.raises(FileNotFoundError):
        lab.keep("v4")
    assert lab.kept is None
    (tmp_path / "missing").mkdir()
    lab.set_limit(2, "days", "gt", 20)
    kept = lab.keep("v4")
    assert rb.RuleSet.load(tmp_path / "missing" / "rules.yaml") == kept


@pytest.mark.skipif(which("node") is None, reason="the script is run by node, which is not there")
def test_every_field_that_was_changed_is_sent_before_the_draft_is_kept():
    script = files("runbook_nb.widgets").joinpath("static/rulelab.js").read_text("utf-8")
    start, end = script.index("  const waiting ="), script.index("  // --- parts")
    clicks = """
      const sent = [];
      const ask = async (what, about) => {
        sent.push([what, about.what, about.rule, (about.args ?? []).at(-1)]);
        await new Promise((then) => setTimeout(then, 1));
        return about.args?.at(-1) === "refused" ? null : {};
      };
      let settled_down = 0;
      const settle = () => { settled_down += 1; };
      let drawn_back = 0;
      const around = () => { drawn_back += 1; };
      %s
      const keep = async () => { if (await settled()) await ask("keep", {}); };
      await keep();
      for (const limit of [12, 13, 14]) edit({ id: 0 }, "limit", "days", "gt", "number", limit);
      edit({ id: 1 }, "verdict", "fresh");
      edit({ id: 2 }, "label", "why");
      change({ what: "add" });
      change({ what: "add" });
      await keep();
      edit({ id: 2 }, "label", "refused");
      edit({ id: 1 }, "verdict", "old");
      await keep();
      sent.push(["settled", settled_down, drawn_back]);
      console.log(JSON.stringify(sent));
    """
    run = subprocess.run(
        [which("node"), "--input-type=module", "-e", clicks % script[start:end]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == [
        ["keep", None, None, None],
        ["edit", "limit", 0, 12],
        ["edit", "limit", 0, 14],
        ["edit", "verdict", 1, "fresh"],
        ["edit", "label", 2, "why"],
        ["edit", "add", None, None],
        ["edit", "add", None, None],
        ["keep", None, None, None],
        ["edit", "label", 2, "refused"],
        ["edit", "verdict", 1, "old"],
        ["settled", 2, 1],
    ]
    # Both ways out of the page wait for it.
    for what in ('ask("text"', 'ask("keep"'):
        before = script[: script.index(what)].rstrip().splitlines()
        assert before[-2].strip() == "if (!await settled()) return;"


def test_the_button_answers_with_what_was_kept():
    lab = RuleLab(answer())
    assert lab.told["can_keep"] is False
    lab.set_limit(2, "days", "gt", 14)
    assert lab.told["can_keep"] is True
    answered = lab.answer({"ask": "keep", "id": "1", "about": {"version": "v4"}})
    assert answered["answer"] == {"title": "health-signal v4", "path": ""}
    lab.set_limit(2, "days", "gt", 20)
    fault = lab.answer({"ask": "keep", "id": "2", "about": {"version": "v4"}})["fault"]
    assert "already the version of other content" in fault["what"]
    assert "'v5'" in fault["fix"]


@pytest.mark.parametrize("form", ["python", "yaml", "json"])
def test_the_text_is_that_of_the_version_it_would_be_kept_as(form):
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    text = lab.answer({"ask": "text", "id": "1", "about": {"form": form}})["answer"]["text"]
    if form == "python":
        held = {}
        exec(compile(text, "<cell>", "exec"), held)  # noqa: S102 - a text made here
        assert held["rules"] == posture(14, "v4")
    else:
        assert rb.RuleSet.loads(text) == posture(14, "v4")
    assert lab.keep() == posture(14, "v4")
    assert "'v4'" in lab.text("python")


# -- where it cannot run --------------------------------------------------------------------------


def test_the_static_view_holds_the_comparison_and_stands_untrusted():
    rows = [{**row, "host": row["host"] + HOSTILE} for row in ROWS]
    lab = RuleLab(answer(rows=rows))
    lab.set_limit(2, "days", "gt", 14)
    html = lab._repr_mimebundle_()[0][HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert "<img" not in html
    assert "\u202e" not in html
    assert "2 verdicts change" in html
    for label in ("Changed", "Counts", "Rules", "On the edge"):
        assert label in html


def test_the_text_names_rules_that_are_not_applied():
    lab = RuleLab(answer())
    lab.set_limit(2, "days", "gt", 14)
    lab.add({"kep": {"lt": 7}}, "unprotected")
    text = lab._repr_mimebundle_()[0][TEXT]
    assert text.splitlines()[0] == (
        "RuleLab health-signal v3 -> draft · 2 of 6 verdicts change (4 unchanged) · "
        "1 rule not applied"
    )
    assert "no subject has the key 'kep'" in text


@pytest.mark.parametrize("what", ["comparison", "rejudged", "without flips", "cannot be judged"])
def test_comparisons_stand_untrusted_and_are_the_same_each_time(what):
    def shown():
        envelope = answer(rows=[{**row, "host": row["host"] + HOSTILE} for row in ROWS])
        if what == "cannot be judged":
            envelope = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
            keep = rb.Rule({"keep": {"lt": 7}}, "unprotected", HOSTILE)
            return envelope.compare(envelope.rejudge(posture(14, "v4", keep)))
        again = envelope.rejudge(posture(7 if what == "without flips" else 14, "v4"))
        return again if what == "rejudged" else envelope.compare(again)

    html = shown()._repr_mimebundle_()[0][HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert "<img" not in html
    assert "\u202e" not in html
    assert html == shown()._repr_mimebundle_()[0][HTML]
    assert set(shown()._repr_mimebundle_(include=[TEXT])[0]) == {TEXT}
    assert all(len(line) <= 100 for line in str(shown()).splitlines())


AGES = st.lists(st.one_of(st.none(), st.integers(0, 20)), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(AGES, st.integers(0, 20), st.integers(0, 20))
def test_what_is_shown_adds_up(ages, old, new):
    rows = [{"host": str(n), "known": age is not None, "days": age} for n, age in enumerate(ages)]
    lab = RuleLab(rows, posture(old), subject="host")
    lab.set_limit(2, "days", "gt", new)
    told = lab.told
    assert told["changed"] + told["unchanged"] == told["judged"] == len(rows)
    assert sum(one["old"] for one in told["counts"]) == len(rows)
    assert sum(one["new"] for one in told["counts"]) == len(rows)
    fired = [rule["fired"] for rule in told["rules"]]
    assert sum(fired) + told["default"]["fired"] == len(rows)
    assert sum(rule["before"] for rule in told["rules"]) + told["default"]["before"] == len(rows)
    low, high = sorted((old, new))
    assert told["changed"] == sum(age is not None and low < age <= high for age in ages)
    if told["histogram"]:
        assert told["histogram"]["between"] == told["changed"]


@pytest.mark.parametrize("far", [float("inf"), 10**400, 1.7e308], ids=["inf", "whole", "1.7e308"])
def test_numbers_that_no_axis_reaches_keep_no_lab_from_opening_or_changing(far):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    lab = rb.RuleLab({"days": [1, 9, float("inf"), -float("inf"), 1.7e308, -1.7e308]}, rules)
    json.dumps(lab.told, allow_nan=False)
    lab.set_limit(1, "days", "gt", far)
    json.dumps(lab.told, allow_nan=False)
    assert lab.told["changed"] == lab.comparison.changed > 0


# --- words that lag behind ---------------------------------------------------------------------


def labelled(label, default="fresh", limit=7):
    rules = rb.RuleSet(
        "age",
        "v1",
        [rb.Rule({"days": {"gt": limit}}, "old", label=label)],
        rb.Default("fresh", label=default),
    )
    return rb.RuleLab({"days": [9, 2, 30]}, rules)


def test_a_label_that_still_names_a_limit_is_told_of_and_never_rewritten():
    lab = labelled("older than 7 days", "7 days at most")
    assert lab.told["notes"] == []
    lab.set_limit(1, "days", "gt", 14)
    now = "still names 7, the limit of days that is now 14"
    assert lab.told["notes"] == [f"the label of rule 1 {now}", f"the label of the default {now}"]
    assert lab.edited.rules[0].rule.label == "older than 7 days"
    assert f"The label of rule 1 {now}." in lab._repr_mimebundle_()[0]["text/html"]
    lab.set_label(1, "older than 14 days")
    assert lab.told["notes"] == [f"the label of the default {now}"]
    lab.set_limit(1, "days", "gt", 7)
    assert lab.told["notes"] == []


@pytest.mark.parametrize("label", ["older than a week", "over 17 days", "7.5 days", "v7", None])
def test_a_label_that_does_not_name_the_limit_is_not_told_of(label):
    lab = labelled(label)
    lab.set_limit(1, "days", "gt", 14)
    assert lab.told["notes"] == []


def test_a_word_that_left_a_list_is_told_of_and_a_single_letter_is_not():
    rule = rb.Rule({"tier": {"in": ["a", "gold", "silver"]}}, "old", label="a gold or silver one")
    lab = rb.RuleLab({"tier": ["a", "gold"]}, rb.RuleSet("t", "v1", [rule], "fresh"))
    lab.set_limit(1, "tier", "in", ["silver"])
    assert lab.told["notes"] == [
        "the label of rule 1 still names gold, the limit of tier that is now silver"
    ]


def test_a_limit_that_a_policy_hides_is_not_named():
    rules = rb.RuleSet("t", "v1", [rb.Rule({"pin": {"eq": 4711}}, "bad", label="is 4711")], "fresh")
    lab = RuleLab(answer(rules, [{"host": "a", "pin": 4711}], redact={"keys": ["pin"]}))
    lab.set_limit(1, "pin", "eq", 12)
    assert not any("pin" in note or "4711" in note for note in lab.told["notes"])
