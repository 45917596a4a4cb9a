"""The OpenAPI document of a chart: valid, the same every time, safe whatever the author wrote."""

from __future__ import annotations

import copy
import json
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel, Field, TypeAdapter, computed_field
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.openapi import as_commonmark
from runbook_nb.errors import ChartError, DefinitionError

ASKED = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "n": {"type": "number"}},
}
GIVEN = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


def chart(*, id="seed", name="Seed", **more):
    return flow_chart(name, print, id=id, **more).build()


def document(*, options=None, **more):
    """Make a document, and hold it to the meta-schema and to JSON."""
    found = chart(**more).openapi(**(options or {}))
    assert list(OpenAPIV31SpecValidator(found).iter_errors()) == []
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def post(found):
    ((path, item),) = found["paths"].items()
    assert path.startswith("/")
    return item["post"]


def body_schema(found):
    return post(found)["requestBody"]["content"]["application/json"]["schema"]


def answer_schema(found, code="200"):
    return post(found)["responses"][code]["content"]["application/json"]["schema"]


def takes(found, schema, value):
    """Judge a value as somebody does who reads the whole document."""
    resource = Resource(contents=found, specification=DRAFT202012)
    registry = Registry().with_resource("doc:", resource)
    rooted = json.loads(json.dumps(schema).replace('"#/', '"doc:#/'))
    return jsonschema.Draft202012Validator(rooted, registry=registry).is_valid(value)


# --- what is in it -----------------------------------------------------------------------------


def test_a_chart_without_a_contract_has_one_path_and_no_body():
    found = document(description="Starts it.")
    assert found["openapi"] == "3.1.0"
    assert found["info"] == {"title": "Seed", "version": "1.0.0", "description": "Starts it."}
    assert list(found["paths"]) == ["/seed"]
    assert list(found["paths"]["/seed"]) == ["post"]
    assert "requestBody" not in post(found)
    assert list(post(found)["responses"]) == ["200", "500"]
    assert "content" not in post(found)["responses"]["200"]
    assert post(found)["summary"] == "Seed"
    assert post(found)["description"].splitlines() == ["Seed: Starts it.", "1. Seed"]


def test_the_contract_is_the_body_and_the_answer():
    found = document(input_schema=ASKED, output_schema=GIVEN)
    assert body_schema(found) == ASKED
    assert answer_schema(found) == GIVEN
    assert post(found)["requestBody"]["required"] is True
    assert list(post(found)["responses"]) == ["200", "400", "500"]


def test_a_body_is_asked_for_only_where_something_is_required():
    optional = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert "required" not in post(document(input_schema=optional))["requestBody"]


def test_errors_are_described_as_the_errors_of_this_package_are():
    found = document(input_schema=ASKED)
    error = found["components"]["schemas"]["RunError"]
    for code in ("400", "500"):
        assert answer_schema(found, code) == {"$ref": "#/components/schemas/RunError"}
    with pytest.raises(ChartError) as caught:
        chart(input_schema=ASKED).run_sync()
    told = {
        "code": caught.value.code,
        "message": caught.value.message,
        "problems": [{"message": p.message, "where": p.where} for p in caught.value.problems],
    }
    assert takes(found, error, told)
    assert not takes(found, error, {"message": "no code"})


@pytest.mark.parametrize(
    ("id", "path", "operation"),
    [
        ("My Flow α!", "/my-flow", "My_Flow"),
        ("per_subject.v2", "/per-subject-v2", "per_subject.v2"),
        ("αβγ", "/execute", "execute"),
        ("--", "/execute", "--"),
        ("READ", "/read", "READ"),
    ],
)
def test_ids_are_made_safe_for_paths_and_names(id, path, operation):
    found = document(id=id)
    assert list(found["paths"]) == [path]
    assert post(found)["operationId"] == operation


def test_title_version_description_and_path_can_be_said():
    found = document(
        description="of the chart",
        options={
            "title": "Triage",
            "version": "2.1",
            "description": "of the service",
            "path": "/v2/triage",
        },
    )
    assert found["info"] == {"title": "Triage", "version": "2.1", "description": "of the service"}
    assert list(found["paths"]) == ["/v2/triage"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("path", "triage"),
        ("path", "/triage/{id}"),
        ("path", "/a?b"),
        ("path", "/a b"),
        ("path", "/a\u202eb"),
        ("path", ""),
        ("title", ""),
        ("version", 2),
        ("description", "  "),
    ],
)
def test_an_option_that_would_make_the_document_wrong_is_refused(option, value):
    with pytest.raises(DefinitionError) as caught:
        chart().openapi(**{option: value})
    assert caught.value.code == "bad_openapi"
    assert caught.value.where == option


# --- schemas in a document ---------------------------------------------------------------------


class Cat(BaseModel):
    kind: Literal["cat"]
    kittens: list[Cat] = []


class Dog(BaseModel):
    kind: Literal["dog"]
    born: date


class Ask(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    share: Decimal = Decimal("0.5")


class Told(BaseModel):
    kind: Literal["cat", "dog"]
    mother: Cat | None = None

    @computed_field
    @property
    def legs(self) -> int:
        return 4


def test_the_definitions_of_models_are_components_that_resolve():
    found = document(input_schema=Ask, output_schema=Told)
    assert sorted(found["components"]["schemas"]) == ["Cat", "Cat_2", "Dog", "RunError"]
    assert "#/$defs" not in json.dumps(found)
    pet = body_schema(found)["properties"]["pet"]
    assert pet["discriminator"]["mapping"] == {
        "cat": "#/components/schemas/Cat",
        "dog": "#/components/schemas/Dog",
    }
    body = body_schema(found)
    assert takes(found, body, {"pet": {"kind": "cat", "kittens": [{"kind": "cat"}]}})
    assert not takes(found, body, {"pet": {"kind": "cat", "kittens": [{"kind": "dog"}]}})
    assert not takes(found, body, {"pet": {"kind": "dog"}})


def test_an_answer_is_described_as_the_model_writes_it():
    answer = answer_schema(document(output_schema=Told))
    assert "legs" in answer["required"]


def test_a_model_that_holds_itself_is_a_component():
    found = document(input_schema=Cat)
    assert body_schema(found) == {"$ref": "#/components/schemas/Cat"}
    assert takes(found, body_schema(found), {"kind": "cat", "kittens": [{"kind": "cat"}]})


def test_a_type_adapter_is_as_good_as_a_model():
    found = document(output_schema=TypeAdapter(list[Told]))
    assert answer_schema(found)["type"] == "array"
    assert takes(found, answer_schema(found), [])


def test_references_to_any_part_of_a_schema_are_moved_with_it():
    tree = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/tree",
        "type": "object",
        "properties": {
            "left": {"$ref": "#"},
            "size": {"$ref": "#/$defs/a~1b"},
            "same": {"$ref": "#/properties/size"},
            "old": {"$ref": "#/definitions/name/properties/first"},
            "far": {"$ref": "https://example.org/other"},
            "$ref": {"type": "string"},
        },
        "$defs": {"a/b": {"type": "integer"}},
        "definitions": {"name": {"properties": {"first": {"type": "string"}}}},
        "default": {"$ref": "#/is/data"},
        "examples": [{"left": {"$ref": "#"}}],
        "additionalProperties": False,
    }
    found = chart(input_schema=tree).openapi(path="/a~b/c")
    body = body_schema(found)
    assert body["properties"]["far"] == {"$ref": "https://example.org/other"}
    assert body["properties"]["$ref"] == {"type": "string"}
    assert body["default"] == {"$ref": "#/is/data"}
    assert body["examples"] == tree["examples"]
    assert "$id" not in body
    assert sorted(found["components"]["schemas"]) == ["RunError", "a_b", "name"]
    del body["properties"]["far"]
    assert list(OpenAPIV31SpecValidator(found).iter_errors()) == []
    assert takes(found, body, {"left": {"left": {"size": 1}, "same": 2}, "old": "x"})
    assert not takes(found, body, {"left": {"left": {"size": "1"}}})
    assert not takes(found, body, {"same": "x"})
    assert not takes(found, body, {"old": 1})
    assert not takes(found, body, {"left": {"other": 1}})


def test_definitions_of_one_name_do_not_stand_for_each_other():
    one = {"$defs": {"it": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/it"}}}
    two = {"$defs": {"it": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/it"}}}
    found = document(
        input_schema={"type": "object", **one}, output_schema={"type": "object", **two}
    )
    assert takes(found, body_schema(found), {"a": 1})
    assert takes(found, answer_schema(found), {"a": "1"})
    assert not takes(found, answer_schema(found), {"a": 1})
    error = {"type": "object", "$defs": {"RunError": {"type": "null"}}}
    assert "RunError_2" in document(input_schema=error)["components"]["schemas"]


def test_a_validator_that_cannot_say_what_it_takes_takes_an_object():
    class Any:
        def parse(self, value):
            return value

    assert body_schema(document(input_schema=Any())) == {"type": "object"}
    assert "content" not in post(document(output_schema=Any()))["responses"]["200"]


def test_a_model_without_a_json_form_is_an_error_that_names_it():
    class Odd(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        at: object = Field(default_factory=object)
        lock: Exception

    with pytest.raises(ChartError, match="Odd has no JSON Schema") as caught:
        chart(input_schema=Odd).openapi()
    assert caught.value.code == "bad_schema"


def test_values_in_a_schema_that_json_does_not_have_are_written_as_json_has_them():
    schema = {
        "type": "object",
        "properties": {"at": {"default": date(2026, 1, 2), "enum": (date(2026, 1, 2), None)}},
    }
    assert body_schema(document(input_schema=schema))["properties"]["at"] == {
        "default": "2026-01-02",
        "enum": ["2026-01-02", None],
    }


# --- text of others ----------------------------------------------------------------------------

HOSTILE = (
    "# x\n\n1. **y** [z](javascript:alert(1)) <script>\x1b[2J\u202e &lt; ~~~ `c` | https://x.y"
)


def shown(markdown):
    """Give what CommonMark shows, and the names of what it made of the text."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    inner = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in [*tokens, *inner]}
    return "".join(child.content for child in inner), kinds


def test_text_of_others_stays_text_wherever_it_is_shown():
    found = document(
        name=HOSTILE, description=HOSTILE, options={"title": HOSTILE, "description": HOSTILE}
    )
    assert "\n" not in found["info"]["title"] + post(found)["summary"]
    assert "\x1b" not in json.dumps(found, ensure_ascii=False)
    assert "\u202e" not in json.dumps(found, ensure_ascii=False)
    for text in (found["info"]["description"], post(found)["description"]):
        words, kinds = shown(text)
        assert kinds <= {
            *("paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak"),
            *("ordered_list_open", "ordered_list_close", "list_item_open", "list_item_close"),
        }
        assert "<script>" in words


@given(st.text(max_size=40))
def test_an_escaped_text_is_shown_as_it_is(text):
    plain = as_commonmark(text)
    words, kinds = shown(f"- {plain}")
    assert kinds <= {
        *("paragraph_open", "paragraph_close", "inline", "text", "text_special"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    }
    from runbook_nb._text import visible

    assert words == visible(" ".join(text.split()))


@given(
    name=st.text(min_size=1, max_size=20).filter(str.strip),
    description=st.text(max_size=20),
    property=st.text(max_size=10),
)
def test_whatever_an_author_writes_the_document_is_valid(name, description, property):
    schema = {
        "type": "object",
        "properties": {property: {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"description": description}, name: {}},
    }
    document(name=name, description=description, input_schema=schema, output_schema=schema)


# --- the same every time -----------------------------------------------------------------------


def test_two_documents_of_a_chart_are_equal_and_apart():
    built = chart(input_schema=Ask, output_schema=GIVEN)
    first, second = built.openapi(), built.openapi()
    assert json.dumps(first) == json.dumps(second)
    before = copy.deepcopy(second)
    first["paths"]["/seed"]["post"]["responses"].clear()
    first["components"]["schemas"].clear()
    assert second == before
    assert built.openapi() == before
