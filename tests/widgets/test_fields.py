"""Fields read off a schema: how each is asked for, what was typed, what the tool's check says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._arguments import resolved, unchecked_keywords, validate_arguments
from runbook_nb._text import MISSING
from runbook_nb.errors import DefinitionError
from runbook_nb.record.redact import Redact
from runbook_nb.widgets.fields import Entries, Field, fields_of


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def field(sub, *, required=False):
    (made,) = fields_of(schema(["x"] if required else [], x=sub))
    return made


def entries(required=(), policy=None, **properties):
    return Entries(schema(required, **properties), policy)


# -- how each is asked for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sub", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "date-time"}, "text"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "password"}, "secret"),
        ({"type": "string", "writeOnly": True}, "secret"),
        ({"anyOf": [{"type": "string", "writeOnly": True}, {"type": "null"}]}, "secret"),
        ({"type": "integer"}, "number"),
        ({"type": "number"}, "number"),
        ({"type": "boolean", "default": False}, "switch"),
        ({"type": "boolean"}, "choice"),  # whether it was given is a third thing
        ({"enum": ["a", 1, None]}, "choice"),
        ({"const": "a"}, "choice"),
        ({"type": "array"}, "json"),
        ({"type": "object"}, "json"),
        ({}, "json"),
        ({"type": ["string", "integer"]}, "json"),
        ({"type": ["string", "null"]}, "text"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "number"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json"),
    ],
)
def test_each_schema_is_asked_for_in_its_way(sub, kind):
    assert field(sub).kind == kind


def test_references_are_followed():
    told = {
        **schema(x={"$ref": "#/$defs/Site", "description": "Where."}),
        "$defs": {"Site": {"enum": ["eu", "us"], "title": "Site"}},
    }
    (made,) = fields_of(told)
    assert (made.kind, made.title, made.description) == ("choice", "Site", "Where.")
    assert [label for label, _ in made.choices] == ["eu", "us"]
    assert resolved({}, {"$ref": "#/nowhere", "default": 1}) == {"default": 1}


def test_choices_can_have_labels():
    values = {"enum": [1, 2], "x-enum-labels": ["low", "high"]}
    assert field(values).choices == (("low", 1), ("high", 2))
    forms = {"oneOf": [{"const": "eu", "title": "Europe"}, {"const": "us"}]}
    assert field(forms).choices == (("Europe", "eu"), ("us", "us"))
    assert field({"enum": [1, 2], "x-enum-labels": ["low"]}).choices == (("1", 1), ("2", 2))
    assert unchecked_keywords(schema(x=values)) == []


@pytest.mark.parametrize(
    ("sub", "hint"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 90}, "whole number, 1 to 90"),
        ({"type": "number", "exclusiveMinimum": 0}, "more than 0"),
        ({"type": "string", "pattern": "^db-"}, "like ^db-"),
        ({"type": "string", "format": "date"}, ""),
        ({"type": "string", "maxLength": 5}, "at most 5 characters"),
        ({"type": "array", "minItems": 2}, "list, as JSON, at least 2 items"),
        ({"enum": [1]}, ""),
    ],
)
def test_what_values_have_to_be_is_said(sub, hint):
    assert field(sub).hint == hint


def test_the_order_and_what_is_required_are_the_schemas():
    made = fields_of(schema(["b"], c={"type": "string"}, b={"type": "string"}, a={}))
    assert [(one.name, one.required) for one in made] == [("c", False), ("b", True), ("a", False)]


def test_what_a_front_end_gets_has_no_value_in_it():
    made = field({"type": "string", "writeOnly": True, "default": "hunter-22"})
    assert made.default is MISSING
    assert "hunter-22" not in json.dumps(made.told())


# -- what was typed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sub", "raw", "value"),
    [
        ({"type": "string"}, "7", "7"),
        ({"type": "string"}, " x ", " x "),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "integer"}, "seven", "seven"),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean", "default": True}, False, False),
        ({"enum": ["a", None]}, "1", None),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": ["string", "integer"]}, "db-7", "db-7"),
        ({"type": ["string", "integer"]}, "7", 7),
        ({"type": "string", "writeOnly": True}, " ", " "),
    ],
)
def test_what_was_typed_becomes_a_value(sub, raw, value):
    assert field(sub).read(raw) == value


def test_nothing_typed_is_nothing_given():
    for sub in ({"type": "string"}, {"type": "integer"}, {"enum": [1]}, {"type": "array"}):
        assert field(sub).read("") is MISSING
    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert field(nullable).read("") is MISSING
    assert field(nullable, required=True).read("") is None
    assert field({"type": "boolean"}).read("") is MISSING
    assert field({"enum": [1]}).read("9") is MISSING
    assert field({"enum": [1]}).read("²") is MISSING


def test_what_is_no_json_says_where():
    with pytest.raises(ValueError, match=r"is no JSON: .*, line 2, column"):
        field({"type": "object"}).read('{"a": 1,\n]')
    with pytest.raises(ValueError, match="NaN is no JSON value"):
        field({"type": "array"}).read("[NaN]")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_stands_in_a_field_and_comes_back(value):
    made = Field("x", "json", True, "x", empty=None)
    if value is not None:
        assert made.read(made.write(value)) == value


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_comes_back(value):
    made = field({"type": "number"})
    assert made.read(made.write(value)) == value


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_comes_back(value):
    made = field({"type": "string"})
    assert made.read(made.write(value)) == value


def test_dates_stand_as_iso_text():
    from datetime import date

    assert field({"type": "string", "format": "date"}).write(date(2026, 1, 2)) == "2026-01-02"


# -- what is wrong ---------------------------------------------------------------------------


def test_the_tools_own_check_speaks_beside_the_field():
    made = entries(["days"], days={"type": "integer", "minimum": 1}, hosts={"type": "array"})
    assert made.problems({"days": ""}) == {"days": "is required"}
    assert made.problems({"days": "0"}) == {"days": "must be at least 1, and is 0"}
    assert made.problems({"days": "soon"}) == {"days": "must be integer, not string"}
    assert made.problems({"days": "1", "hosts": "[1"}) == {
        "hosts": "is no JSON: expecting ',' delimiter, line 1, column 3"
    }
    assert made.problems({"days": "1"}) == {}


@given(st.dictionaries(st.sampled_from(["days", "name", "flag", "hosts"]), VALUES))
def test_a_form_lets_through_what_the_tool_takes_and_nothing_else(args):
    made = entries(
        ["days"],
        days={"type": "integer", "minimum": 1},
        name={"type": "string", "minLength": 2},
        flag={"type": "boolean"},
        hosts={"type": "array", "items": {"type": "string"}},
    )
    raw = {name: made.by_name[name].write(value) for name, value in args.items()}
    try:
        values = made.values(raw)
    except ValueError:
        return
    if not made.problems(raw):
        assert validate_arguments(made.schema, values) == []
    else:
        unread = any("JSON" in said for said in made.problems(raw).values())
        assert unread or validate_arguments(made.schema, values) != []


def test_a_fault_deep_inside_names_its_place():
    made = entries(hosts={"type": "array", "items": {"type": "string"}})
    said = made.problems({"hosts": "[1]"})
    assert said == {"hosts": "[0]: must be string, not integer"}


def test_a_name_with_a_dot_keeps_its_fault():
    made = entries(["a.b"], **{"a.b": {"type": "integer"}})
    assert made.problems({"a.b": "x"}) == {"a.b": "must be integer, not string"}


def test_what_is_about_no_field_stands_by_itself():
    made = Entries({**schema(a={"type": "string"}), "minProperties": 1}, None)
    assert made.problems({}) == {"": "must hold at least 1 name, and holds 0"}


def test_an_unknown_name_names_the_near_one():
    with pytest.raises(DefinitionError, match="did you mean 'cluster'") as caught:
        entries(cluster={"type": "string"}).checked("clutser")
    assert caught.value.code == "unknown_field"


# -- secrets ---------------------------------------------------------------------------------


def test_what_a_policy_hides_is_a_secret_too():
    made = entries(policy=Redact(keys=("token",)), token={"type": "string"}, a={"type": "string"})
    assert made.secret == {"token"}


@pytest.mark.parametrize(
    "policy",
    [
        Redact(keys=("token",)),
        Redact(patterns=("^tok",)),
        Redact(paths=("auth.token",)),
        Redact(fields={"auth": ("token",)}),
    ],
)
def test_a_field_that_holds_what_a_policy_hides_is_a_secret(policy):
    auth = {"type": "object", "properties": {"token": {"type": "string"}}}
    made = entries(policy=policy, auth=auth, other={"type": "string"})
    assert made.secret == {"auth"}
    assert made.values({"auth": '{"token": "t"}'}) == {"auth": {"token": "t"}}


OPEN = [
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "array"},
    {"type": "array", "items": {"type": "object"}},
    {"type": ["string", "object"]},
    {},
    {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Any"}]},
]
CLOSED = [
    {"type": "string"},
    {"enum": [{"a": 1}, {"a": 2}]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
]


@pytest.mark.parametrize("policy", [Redact(keys=("token",)), Redact(patterns=("^tok",))])
@pytest.mark.parametrize("sub", OPEN + CLOSED)
def test_where_any_name_may_stand_one_that_a_policy_hides_may(policy, sub):
    told = {**schema(given=sub), "$defs": {"Any": {"type": "object"}}}
    assert Entries(told, policy).secret == ({"given"} if sub in OPEN else set())
    assert Entries(told, None).secret == Entries(told, Redact(paths=("a.b",))).secret == set()


def test_a_secret_part_is_found_however_deep_it_lies():
    told = {
        **schema(
            rows={"type": "array", "items": {"$ref": "#/$defs/Row"}},
            tree={"$ref": "#/$defs/Tree"},
            map={"type": "object", "additionalProperties": {"format": "password"}},
        ),
        "$defs": {
            "Row": {"type": "object", "properties": {"pin": {"writeOnly": True}}},
            "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
        },
    }
    assert Entries(told, None).secret == {"rows", "map"}


@pytest.mark.parametrize(
    ("sub", "value"),
    [
        ({"type": "integer"}, 1234),
        ({"type": "number"}, 0.5),
        ({"type": "boolean"}, False),
        ({"type": "string"}, "1234"),
        ({"type": ["string", "null"]}, " 12 "),
        ({"type": ["string", "object"]}, "1234"),
        ({"type": ["string", "object"]}, {"a": "1"}),
        ({"enum": [1, 2]}, 2),
        ({"enum": ["1", "2"]}, "2"),
        ({"type": "array", "items": {"type": "string"}}, ["1", "2"]),
        ({"format": "password"}, '{"a": 1}'),
        ({}, "1234"),
    ],
)
def test_a_secret_is_read_by_its_declared_type(sub, value):
    one = field({**sub, "writeOnly": True})
    assert one.kind == "secret"
    found = one.read(one.write(value))
    assert found == value
    assert type(found) is type(value)


def test_a_secret_of_another_type_is_not_quoted():
    made = entries(pin={"type": "integer", "writeOnly": True}, auth={"type": "object"})
    said = made.problems({"pin": "hunter-22"})
    assert set(said) == {"pin"}
    assert "hunter-22" not in str(said)


def test_no_problem_quotes_a_secret():
    made = entries(["pin"], pin={"type": "string", "pattern": "^[0-9]+$", "format": "password"})
    said = made.problems({"pin": "hunter-22"})
    assert set(said) == {"pin"}
    assert "hunter-22" not in str(said)


def test_a_runbook_hides_what_it_asks_for_as_a_secret():
    def procedure(tools):
        def say(scope):
            scope["report"] = {"used": f"token {scope.args['token']} for {scope.args['a']}"}

        return rb.flow_chart("says", say, id="say").build()

    made = rb.runbook_as_tool(
        name="say_it",
        description="Says it.",
        procedure=procedure,
        result_kind="report/said",
        redact={"keys": ["other"]},
        input_schema=schema(a={"type": "string"}, token={"type": "string", "writeOnly": True}),
    )
    assert made.carried["runbook"].redact.to_dict() == {"keys": ["other", "token"]}
    box = rb.Toolbox([made])
    answer = box.call_sync("say_it", {"a": "b-123456", "token": "hunter-22"})
    assert answer["result"]["used"] == "token [REDACTED] for b-123456"
    shown = json.dumps([answer._repr_mimebundle_()[0], answer.to_dict()])
    assert "hunter-22" not in shown
    assert "hunter-22" not in box.last_run.recording().to_json()


def test_values_too_many_to_choose_from_are_typed_and_checked():
    names = [f"host-{n}" for n in range(20_000)]
    made = entries(["host"], host={"enum": names}, port={"enum": [*range(5000)]})
    host, _port = made.fields
    assert (host.kind, host.choices) == ("text", ())
    assert host.hint == "one of 20000: host-0, host-1, host-2, …"
    assert made.problems({"host": "host-7", "port": "70"}) == {}
    assert made.values({"host": "host-7", "port": "70"}) == {"host": "host-7", "port": 70}
    said = made.problems({"host": "host-20007", "port": "7000"})
    assert "or 19950 others, and is" in said["host"]
    assert "or 4950 others, and is 7000" in said["port"]
    assert made.problems({"host": ""}) == {"host": "is required"}


def test_the_choices_of_all_fields_share_one_room():
    wide = ["w" * 70 + str(n) for n in range(900)]
    made = entries(a={"enum": wide}, b={"enum": wide}, c={"enum": ["x", "y"]})
    assert [one.kind for one in made.fields] == ["choice", "text", "choice"]


def test_values_of_several_types_are_typed_as_what_they_look_like():
    one = field({"enum": [*range(600), *(f"n{n}" for n in range(600))]})
    assert one.kind == "json"
    assert [one.read("7"), one.read("n7"), one.read("")] == [7, "n7", MISSING]
