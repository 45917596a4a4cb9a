"""What a policy hides, what it learns, and that what cannot be read is hidden."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._frozen import freeze
from runbook_nb._json import to_wire
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import DefinitionError
from runbook_nb.record.redact import (
    PLACEHOLDER,
    Redact,
    Redactor,
    as_redact,
    joined_policies,
)
from runbook_nb.record.secrets import FEW, Secrets


def served(value, **policy):
    redactor = Redactor(Redact(**policy))
    return redactor.knowing(redactor.secrets_in(value)).served(value)


# -- the policy --------------------------------------------------------------------------------


def test_a_policy_is_itself_a_mapping_or_nothing():
    policy = Redact(keys=("a",))
    assert as_redact(policy) is policy
    assert as_redact({"keys": ["a"]}) == policy
    assert as_redact(None) is None


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"keyz": ["a"]}, "redact"),
        (["a"], "redact"),
        ({"keys": "token"}, "redact.keys"),
        ({"keys": [1]}, "redact.keys"),
        ({"keys": [""]}, "redact.keys"),
        ({"keys": 5}, "redact.keys"),
        ({"patterns": ["("]}, "redact.patterns"),
        ({"emits": ["["]}, "redact.emits"),
        ({"paths": ["rows[x].token"]}, "redact.paths"),
        ({"paths": ["rows[*"]}, "redact.paths"),
        ({"fields": {"a": "b"}}, "redact.fields['a']"),
        ({"fields": {"a": ["[x]"]}}, "redact.fields['a']"),
        ({"fields": ["a"]}, "redact.fields"),
        ({"paths": ["."]}, "redact.paths"),
    ],
)
def test_a_policy_that_would_hide_nothing_is_refused(bad, where):
    with pytest.raises(DefinitionError) as caught:
        as_redact(bad)
    assert caught.value.where == where


def test_a_misspelt_part_is_named_with_what_was_meant():
    with pytest.raises(DefinitionError, match="did you mean 'keys'"):
        as_redact({"key": ["a"]})


def test_a_policy_does_not_show_the_secrets_it_holds():
    assert "hunter" not in repr(Redact(values=["hunter-2"]))


def test_a_policy_can_be_written_and_read_again():
    policy = Redact(
        keys=("a",), patterns=("b$",), fields={"c": ("d",)}, paths=("e[*]",), values=("f",)
    )
    assert as_redact(json.loads(json.dumps(policy.to_dict()))) == policy
    assert Redact().to_dict() == {}


def test_two_policies_together_hide_what_either_hides():
    first = Redact(keys=("a",), fields={"c": ("d",)}, values=("x",))
    second = Redact(keys=("a", "b"), fields={"c": ("e",)}, emits=("y",))
    both = joined_policies(first, second)
    assert both == Redact(keys=("a", "b"), fields={"c": ("d", "e")}, values=("x",), emits=("y",))
    assert joined_policies(first, None) is first
    assert joined_policies(None, second) is second
    assert joined_policies(None, None) is None


def test_keys_marked_in_a_run_are_hidden_with_or_without_a_policy():
    marked = Redactor(None, marked=("pin",))
    assert marked.active
    assert marked.served({"pin": 1, "token": 2}) == {"pin": PLACEHOLDER, "token": 2}
    both = Redactor(Redact(keys=("token",)), marked=("pin",))
    assert both.served({"pin": 1, "token": 2}) == {"pin": PLACEHOLDER, "token": PLACEHOLDER}
    assert not Redactor(None, marked=()).active


def test_without_a_policy_everything_passes_as_it_is():
    redactor, value = Redactor(None), {"token": object()}
    assert redactor.scrub(value) is value
    assert redactor.served(value) is value
    assert redactor.value("token", value) is value
    assert not redactor.hides_key("token")
    assert not redactor.hides_emit("token")
    assert redactor.text("abc") == "abc"
    assert redactor.secrets_in({"token": "abcdefgh"}) == set()


# -- names and paths ---------------------------------------------------------------------------


def test_names_are_hidden_at_any_depth():
    value = {"token": 1, "a": [{"token": {"deep": 1}, "b": 2}]}
    assert served(value, keys=["token"]) == {
        "token": PLACEHOLDER,
        "a": [{"token": PLACEHOLDER, "b": 2}],
    }


def test_patterns_are_searched_for_in_names_of_any_length():
    long = "x" * 300 + "_secret"
    assert served({long: 1, "Secret": 2}, patterns=["(?i)secret"]) == {
        long: PLACEHOLDER,
        "Secret": PLACEHOLDER,
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("rows[*].key", [{"key": PLACEHOLDER, "n": 1}, {"key": PLACEHOLDER, "n": 2}]),
        ("rows[1].key", [{"key": 5, "n": 1}, {"key": PLACEHOLDER, "n": 2}]),
        ("rows[*]", [PLACEHOLDER, PLACEHOLDER]),
        ("rows", PLACEHOLDER),
        ("rows.key", [{"key": PLACEHOLDER, "n": 1}, {"key": PLACEHOLDER, "n": 2}]),
        ("rows.0.key", [{"key": PLACEHOLDER, "n": 1}, {"key": 6, "n": 2}]),
        ("rows.1", [{"key": 5, "n": 1}, PLACEHOLDER]),
        ("rows[7].key", [{"key": 5, "n": 1}, {"key": 6, "n": 2}]),
        ("other", [{"key": 5, "n": 1}, {"key": 6, "n": 2}]),
    ],
)
def test_paths_go_into_mappings_and_lists(path, expected):
    value = {"rows": [{"key": 5, "n": 1}, {"key": 6, "n": 2}]}
    assert served(value, paths=[path]) == {"rows": expected}


def test_what_lies_behind_a_list_is_hidden_where_a_branch_loads_it():
    assert served({"key": 1, "item": {"key": 2, "n": 3}}, paths=["rows[*].key"]) == {
        "key": PLACEHOLDER,
        "item": {"key": PLACEHOLDER, "n": 3},
    }


@pytest.mark.parametrize(
    ("policy", "hidden"),
    [
        ({"paths": ["a.b"]}, True),
        ({"keys": ["a.b"]}, True),
        ({"keys": ["b"]}, True),
        ({"patterns": ["^b$"]}, True),
        ({"fields": {"a": ["b"]}}, True),
        ({"keys": ["c"]}, False),
        ({"paths": ["b"]}, False),
    ],
)
def test_a_name_spelt_with_dots_is_a_path_and_a_path_may_be_such_a_name(policy, hidden):
    assert served({"a.b": 5}, **policy) == {"a.b": PLACEHOLDER if hidden else 5}


def test_a_key_spelt_with_dots_hides_what_stands_there():
    assert served({"a": {"b": 5, "c": 6}, "b": 7}, keys=["a.b"]) == {
        "a": {"b": PLACEHOLDER, "c": 6},
        "b": 7,
    }


def test_an_appended_item_is_served_as_any_item_of_its_list():
    redactor = Redactor(Redact(paths=["rows[7].key", "lines[*]", "names"], keys=["token"]))
    assert redactor.item("rows", {"key": 1, "n": 2}) == {"key": PLACEHOLDER, "n": 2}
    assert redactor.item("lines", "text") == PLACEHOLDER
    assert redactor.item("names", "text") == PLACEHOLDER
    assert redactor.item("token", "text") == PLACEHOLDER
    assert redactor.item("other", "text") == "text"
    assert Redactor(None).item("token", "text") == "text"


def test_rules_are_served_once_and_given_again():
    rules = rb.RuleSet("r", "1", [rb.Rule({"pin": {"gt": 5}}, "x")])
    redactor = Redactor(Redact(keys=["pin"]))
    assert redactor.rules(rules).rules[0].when["pin"]["gt"] == PLACEHOLDER
    assert redactor.rules(rules) is redactor.rules(rules)
    assert redactor.scrub({"rules": rules})["rules"] is redactor.rules(rules)
    assert Redactor(None).rules(rules) is rules


def test_fields_are_paths_inside_a_key_or_names_with_dots():
    value = {"conn": {"auth": {"pin": 1}, "a.b": 2}, "auth": {"pin": 3}}
    assert served(value, fields={"conn": ["auth.pin", "a.b"]}) == {
        "conn": {"auth": {"pin": PLACEHOLDER}, "a.b": PLACEHOLDER},
        "auth": {"pin": 3},
    }


@pytest.mark.parametrize(
    ("key", "hidden"),
    [
        ("token", True),
        ("conn.token", True),
        ("conn.pin", True),
        ("conn", True),
        ("rows.0.key", True),
        ("rows", True),
        ("key", True),
        ("host", False),
        ("conn2", False),
    ],
)
def test_a_key_of_a_rule_is_hidden_when_any_part_of_what_it_reads_is(key, hidden):
    redactor = Redactor(Redact(keys=["token"], paths=["conn.pin", "rows[*].key"]))
    assert redactor.hides_key(key) is hidden


def test_events_are_hidden_by_pattern_or_by_key():
    redactor = Redactor(Redact(keys=["token"], emits=["^login"]))
    assert [redactor.hides_emit(n) for n in ("login.ok", "token", "other")] == [True, True, False]


# -- values of every kind ----------------------------------------------------------------------

SECRET = "hunter-2"
Pair = namedtuple("Pair", "token name")


class Word(Enum):
    PLAIN = "plain"
    SECRET = SECRET


class Text(str, Enum):  # noqa: UP042 - the older spelling is met too
    PLAIN = "plain"
    SECRET = SECRET


@dataclass
class Opaque:
    token: str = SECRET


class Honest:
    def to_dict(self):
        return {"token": 1, "n": 2}


class Broken:
    def to_dict(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("say " + SECRET, "say [REDACTED]"),
        ((1, SECRET), (1, PLACEHOLDER)),
        ({SECRET}, frozenset({PLACEHOLDER})),
        (Pair(1, SECRET), Pair(PLACEHOLDER, PLACEHOLDER)),
        (b"<" + SECRET.encode() + b">", PLACEHOLDER),
        (b"plain", b"plain"),
        (Word.PLAIN, Word.PLAIN),
        (Word.SECRET, PLACEHOLDER),
        (Text.PLAIN, Text.PLAIN),
        (Text.SECRET, PLACEHOLDER),
        (np.float64(1.5), 1.5),
        (np.str_(SECRET), PLACEHOLDER),
        (np.array([1]), PLACEHOLDER),
        (Opaque(), {"token": PLACEHOLDER}),
        (Honest(), {"token": PLACEHOLDER, "n": 2}),
        (Broken(), PLACEHOLDER),
        (object, PLACEHOLDER),
        (5, 5),
        (None, None),
        (1.5, 1.5),
    ],
)
def test_values_of_any_kind_are_scrubbed_or_hidden(value, expected):
    redactor = Redactor(Redact(keys=["token"], values=[SECRET]))
    assert redactor.scrub(value) == expected
    assert type(redactor.scrub([value])[0]) is type(redactor.scrub(value))


def test_frames_are_served_as_records_and_series_by_their_name():
    frame = pd.DataFrame({"token": ["a"], "n": [1]})
    redactor = Redactor(Redact(keys=["token"]))
    assert redactor.scrub(frame) == [{"token": PLACEHOLDER, "n": 1}]
    assert redactor.scrub(pd.Series([1], name="token")) == PLACEHOLDER
    assert redactor.scrub(pd.Series([1], name="n")) == {0: 1}


def test_keys_that_hold_secrets_are_scrubbed_and_stay_keys():
    redactor = Redactor(Redact(values=[SECRET]))
    assert redactor.scrub({SECRET: 1, (SECRET, 2): 2, 5: 3, None: 4}) == {
        PLACEHOLDER: 1,
        (PLACEHOLDER, 2): 2,
        5: 3,
        None: 4,
    }
    assert redactor.value(f"a {SECRET}", 1) == 1


def test_a_value_too_deep_to_look_through_is_hidden():
    deep = []
    for _ in range(5000):
        deep = [deep]
    redactor = Redactor(Redact(keys=["token"]))
    assert redactor.scrub(deep) == PLACEHOLDER
    assert redactor.secrets_in({"a": deep}) == set()


# -- learning ----------------------------------------------------------------------------------


def test_texts_and_numbers_of_six_characters_under_a_hidden_name_are_learnt():
    value = {"token": {"a": ["longer", "short"], "b": 1234567}, "conn": {"pin": "secret"}, "x": "y"}
    redactor = Redactor(Redact(keys=["token"], paths=["conn.pin"]))
    assert redactor.secrets_in(value) == {"longer", "secret", "1234567"}
    frame = pd.DataFrame({"token": ["abcdefg"]})
    assert redactor.secrets_in({"rows": frame}) == {"abcdefg"}
    assert redactor.secrets_in({"pair": Pair("abcdefg", "n")}) == {"abcdefg"}
    assert redactor.secrets_in({"token": Text.SECRET}) == {SECRET}


def test_an_appended_item_is_any_item_of_its_list():
    redactor = Redactor(Redact(paths=["rows[7].key"]))
    assert redactor.secrets_in({"rows": ({"key": "abcdefg"},)}) == set()
    assert redactor.secrets_in({"rows": ({"key": "abcdefg"},)}, any_item=True) == {"abcdefg"}


# -- secret texts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hunter-2", "[REDACTED]"),
        ("hunter-2hunter-2", "[REDACTED][REDACTED]"),
        ("a hunter-2 b hunter-2", "a [REDACTED] b [REDACTED]"),
        ("hunter-", "hunter-"),
        ("hunter-…", "[REDACTED]…"),
        ("it is hunter-...", "it is [REDACTED]..."),
        ("hunt…", "hunt…"),
        ("no hunter-… in stage 'a'; tried again", "no [REDACTED]… in stage 'a'; tried again"),
        ("hunter-…, hunter-... and hunter-2", "[REDACTED]…, [REDACTED]... and [REDACTED]"),
        ("", ""),
    ],
)
def test_secrets_are_found_whole_and_cut_off(text, expected):
    assert Secrets([SECRET]).hide(text) == expected
    many = Secrets([SECRET, *(f"other-{n:06d}" for n in range(FEW * 2))])
    assert many.hide(text) == expected


def test_escaped_and_trimmed_forms_are_found_too():
    pem = '-----KEY-----\nab"c\n'
    secrets = Secrets([pem])
    for form in (pem, pem.strip(), repr(pem), str(KeyError(pem)), pem.replace("\n", "\\n")):
        assert "ab" not in secrets.hide(f"<{form}>")


def test_overlapping_secrets_leave_no_piece():
    assert Secrets(["abcdefg", "defghij"]).hide("abcdefghij") == PLACEHOLDER
    assert Secrets(["abcdefg", "abcdefghij"]).hide("abcdefghij") == PLACEHOLDER


def test_the_placeholder_itself_is_no_secret():
    assert Secrets(["REDACTED"]).hide("[REDACTED]") == PLACEHOLDER
    assert not Secrets(["REDACTED"])


def test_short_secrets_are_hidden_when_they_are_given_as_values():
    assert served({"a": "pin 42!"}, values=["42"]) == {"a": "pin [REDACTED]!"}


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("nothing", 0),
        (SECRET, 1),
        (f"{SECRET} and {SECRET}", 2),
        (f"{SECRET}{SECRET}", 2),
        ("cut off hunter…", 1),
    ],
)
def test_secrets_are_counted_by_the_places_where_they_stand(text, times):
    assert Secrets([SECRET]).count(text) == times
    assert Redactor(Redact(values=[SECRET])).occurrences(text) == times
    assert Redactor(None).occurrences(text) == 0


def test_words_of_a_form_may_be_scrubbed_too():
    redactor = Redactor(Redact(values=[SECRET]))
    value = {"type": SECRET, "message": SECRET}
    assert redactor.texts(value) == {"type": SECRET, "message": PLACEHOLDER}
    assert redactor.texts(value, ours=False) == {"type": PLACEHOLDER, "message": PLACEHOLDER}


def test_plain_texts_of_ours_are_scrubbed_without_regard_to_names():
    redactor = Redactor(Redact(keys=["key"], values=[SECRET]))
    assert redactor.texts({"key": "age", "at": (SECRET, [SECRET])}) == {
        "key": "age",
        "at": (PLACEHOLDER, [PLACEHOLDER]),
    }


# -- over a run --------------------------------------------------------------------------------


def triage(policy, key="pin"):
    each = (
        flow_chart("b", lambda s: s.update(s.args["item"]), id="load")
        .add_decider(
            "D",
            id="d",
            rules=rb.RuleSet("r", "1", [rb.Rule({key: {"gt": 1000}}, "x")], default="y"),
        )
        .branch("x", lambda s: None)
        .branch("y", lambda s: None)
        .end()
        .build()
    )
    return (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E",
            id="each",
            items=lambda s: [{"name": "a", "pin": 4711}],
            branch=each,
            max_branches=5,
            into="out",
            subject=key,
        )
        .build()
        .run_sync(redact=policy)
    )


def test_numbers_under_a_hidden_name_are_hidden_with_the_limits_they_are_compared_with():
    run = triage({"keys": ["pin"]})
    shown = str([run.walk.to_dicts(), run.slots("each")[0].to_dict(), str(run), run.state])
    shown += str([made.decision.to_dict() for made in run.decisions]) + str(run.recording())
    assert "4711" not in shown
    assert "1000" not in shown
    assert run.decisions[0].subject == PLACEHOLDER
    assert run.slots("each")[0].item == {"name": "a", "pin": PLACEHOLDER}
    assert len(run.walk.of(index=0)) == len(triage(None).walk.of(index=0))


def test_stages_compute_on_real_values_whatever_is_hidden():
    assert triage({"keys": ["pin"]}).fan_outs[0].by_branch == {"x": 1}


def test_commits_say_which_values_are_hidden_whole_or_in_part():
    def write(scope):
        scope["token"] = "abcdefgh"
        scope["conn"] = {"token": "abcdefgh", "host": "h"}
        scope["plain"] = 1

    run = flow_chart("c", write, id="a").build().run_sync(redact={"keys": ["token"]})
    commit = run.commits[0]
    assert commit.redacted == ("token", "conn")
    assert commit.values["conn"] == {"token": PLACEHOLDER, "host": "h"}
    assert commit.to_dict()["redactedPaths"] == ["token", "conn\x1ftoken"]


def test_a_recording_under_a_policy_has_the_placeholder_and_no_seed():
    run = flow_chart("c", lambda s: s.set("token", "abcdefgh"), id="a").build()
    hidden = run.run_sync(redact={"keys": ["token"]}).recording().snapshot
    assert hidden["sharedState"] == {"token": PLACEHOLDER}
    assert "initialState" not in hidden
    assert "initialState" in run.run_sync().recording().snapshot


# -- laws ----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "a.b"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=12), st.dates())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
STATES = st.dictionaries(NAMES, VALUES, max_size=4)
PATHS = st.lists(st.sampled_from(["a", "b", "c", "[*]", "[0]", "1"]), min_size=1, max_size=3).map(
    lambda steps: ".".join(steps).replace(".[", "[")
)
POLICIES = st.builds(
    Redact,
    keys=st.lists(NAMES, max_size=1).map(tuple),
    paths=st.lists(PATHS, max_size=2).map(tuple),
)


def redactor_for(policy, state):
    redactor = Redactor(policy)
    lesson = redactor.lesson()
    lesson.take(state, redactor.paths)
    return redactor.taught(lesson)


def steady(test):
    return settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])(test)


@steady
@given(STATES, POLICIES)
def test_what_was_served_is_served_again_as_it_is(state, policy):
    state = freeze(state)
    redactor = redactor_for(policy, state)
    once = redactor.served(state)
    assert redactor.served(once) == once


@steady
@given(STATES, POLICIES)
def test_no_text_under_a_hidden_name_is_left_anywhere(state, policy):
    state = freeze(state)
    redactor = redactor_for(policy, state)
    shown = json.dumps(to_wire(redactor.served(state)), ensure_ascii=False)
    for secret in redactor.secrets_in(state):
        if secret not in PLACEHOLDER and secret.isalnum():
            assert secret not in shown.replace(PLACEHOLDER, "")


def hidden_places(raw, shown, path=()):
    """Name the places where something was replaced."""
    if shown == PLACEHOLDER != raw:
        yield path
    elif isinstance(raw, dict):
        for (key, item), seen in zip(raw.items(), shown.values(), strict=True):
            yield from hidden_places(item, seen, (*path, key))
    elif isinstance(raw, list):
        for place, (item, seen) in enumerate(zip(raw, shown, strict=True)):
            yield from hidden_places(item, seen, (*path, place))


@steady
@given(STATES, POLICIES, POLICIES)
def test_two_policies_together_hide_every_place_that_either_hides(state, first, second):
    state = freeze(state)
    both = redactor_for(joined_policies(first, second), state).served(state)
    hidden = set(hidden_places(state, both))
    for policy in (first, second):
        for place in hidden_places(state, redactor_for(policy, state).served(state)):
            assert any(place[:length] in hidden for length in range(len(place) + 1))


# -- a name that meets a list ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [{"fields": {"items": ["pin"]}}, {"paths": ["items.pin"]}, {"paths": ["items[*].pin"]}],
)
@pytest.mark.parametrize("loads", [True, False])
def test_what_a_name_leads_to_in_items_is_hidden_in_their_branches(policy, loads):
    items = [{"id": "a", "pin": "x1"}, {"id": "b", "pin": 47}]

    def load(scope):
        if loads:
            scope.update(scope.args["item"])
        else:
            scope["pin"] = scope.args["item"]["pin"]

    branch = rb.flow_chart("one", load, id="one").add_decider(
        "Pin", rules=rb.RuleSet("pins", "1", [rb.Rule({"pin": {"eq": 47}}, "odd")], "even"), id="d"
    )
    branch = branch.branch("odd", lambda s: None).branch("even", lambda s: None).end().build()
    run = (
        rb.flow_chart("c", lambda s: s.set("items", items), id="c")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["items"], branch=branch, max_branches=9, into="out"
        )
        .build()
        .run_sync(redact=policy)
    )
    for slot in run.slots("each"):
        assert slot.item["pin"] == slot.value["pin"] == "[REDACTED]"
        assert "47" not in (slot.sentence or "")
    assert "'x1'" not in str(run.recording().to_dict())
    assert not any("47" in row.text for row in run.walk)
    (entry,) = run.redaction.entries
    assert entry.places["items"] == 2
    assert entry.places["state"] == 4  # twice in the list, once in each branch


def test_a_field_of_items_that_stood_nowhere_is_said_to_have_met_nothing():
    branch = rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="one").build()
    run = (
        rb.flow_chart("c", lambda s: None, id="c")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: [{"pin": "x1"}], branch=branch, max_branches=9,
            into="out",
        )
        .build()
        .run_sync(redact={"fields": {"items": ["pin"]}})
    )  # fmt: skip
    assert [entry.name for entry in run.redaction.never] == ["items.pin"]


def test_a_name_that_meets_no_list_hides_nothing_elsewhere():
    policy = {"fields": {"conn": ["pin"]}}
    run = (
        rb.flow_chart("c", lambda s: s.update({"conn": {"pin": "x1"}, "pin": "y2"}), id="c")
        .build()
        .run_sync(redact=policy)
    )
    assert run.state == {"conn": {"pin": "[REDACTED]"}, "pin": "y2"}


def test_a_policy_that_hid_nothing_hides_what_it_came_to_know_everywhere():
    knowing = Redactor(None).knowing({"t0p-s3cret"})
    assert knowing.text("a t0p-s3cret") == "a [REDACTED]"
    assert knowing.scrub({"k": ["a t0p-s3cret"]}) == {"k": ["a [REDACTED]"]}
    assert not Redactor(None).knowing(()).active
