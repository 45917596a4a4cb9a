"""What a schema asks for as a secret, and that a runbook hides it wherever it goes."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb._arguments import unchecked_keywords
from runbook_nb._secrets import holds_secret, secret_names
from runbook_nb.errors import DefinitionError

PIN = {"type": "string", "writeOnly": True}


def asked(**inputs):
    return {"type": "object", "properties": inputs}


def test_the_names_of_secrets():
    told = {
        **asked(
            a={"type": "string", "writeOnly": True},
            b={"$ref": "#/$defs/Secret"},
            c={"anyOf": [{"$ref": "#/$defs/Secret"}, {"type": "null"}]},
            d={"type": "string"},
        ),
        "$defs": {"Secret": {"type": "string", "format": "password"}},
    }
    assert secret_names(told) == ("a", "b", "c")
    assert unchecked_keywords(told) == []
    round_and_round = {**asked(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert secret_names(round_and_round) == ()


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (asked(pin=PIN), "pin"),
        ({"type": "array", "items": PIN}, "conn"),
        ({"type": "array", "items": asked(pin=PIN)}, "pin"),
        ({"prefixItems": [{"type": "string"}, PIN]}, "conn"),
        ({"additionalProperties": PIN}, "conn"),
        ({"patternProperties": {"^k": PIN}}, "conn"),
        ({"if": {"type": "object"}, "then": asked(pin=PIN)}, "pin"),
        ({"oneOf": [{"type": "null"}, asked(deep=asked(pin={"format": "password"}))]}, "pin"),
        ({"$ref": "#/$defs/Conn"}, "pin"),
    ],
)
def test_a_part_goes_by_the_nearest_name(part, name):
    told = {**asked(days={"type": "integer"}, conn=part), "$defs": {"Conn": asked(pin=PIN)}}
    assert secret_names(told) == (name,)
    assert holds_secret(told, part)
    assert not holds_secret(told, told["properties"]["days"])


def test_what_is_data_or_referred_to_by_nobody_asks_for_nothing():
    given = {"enum": [PIN], "const": PIN, "default": {"properties": PIN}, "examples": [PIN]}
    told = {**asked(a=given), "$defs": {"A": asked(pin=PIN)}}
    assert secret_names(told) == ()
    assert secret_names(asked(properties={"type": "string"}, writeOnly=PIN)) == ("writeOnly",)


def runbook(schema):
    def say(scope):
        conn = scope.args["conn"]
        scope.set("conn", conn)
        scope.set("verdicts", [{"subject": "x", "verdict": "ok", "conn": conn}])
        scope.set("report", {"conn": conn})

    return rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=lambda tools: rb.flow_chart("c", say, id="say").build(),
        result_kind="verdict/x",
        input_schema=schema,
        walk={"recording": True},
    )


@pytest.mark.parametrize(
    ("part", "given"),
    [
        (asked(user={"type": "string"}, pin=PIN), {"user": "joe", "pin": "s3cret-9"}),
        (asked(user={"type": "string"}, pin=PIN), {"user": "joe", "pin": "s3c"}),
        ({"type": "array", "items": asked(pin=PIN)}, [{"pin": "s3cret-9"}]),
        ({"type": "object", "additionalProperties": PIN}, {"any": "s3cret-9"}),
    ],
)
def test_a_runbook_hides_the_secret_part_of_an_input(part, given):
    box = rb.Toolbox([runbook(asked(conn=part))])
    answer = box.call_sync("r", {"conn": given})
    tickets = box.artifacts.list_sync().artifacts
    shown = [
        answer.to_json(dossier=True),
        str(answer),
        answer.to_markdown(),
        str(answer.run.recording().to_json()),
        *(str(box.artifacts.get_sync(ticket.ref).data) for ticket in tickets),
    ]
    assert not [text for text in shown if "s3c" in text]


def test_a_secret_without_a_name_is_refused():
    with pytest.raises(DefinitionError, match=r"stands under no name.*name it under properties"):
        runbook({"type": "object", "additionalProperties": PIN})
