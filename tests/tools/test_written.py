"""Arguments as people write them: read as declared, evaluated never."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError
from runbook_nb.tools import define_tool
from runbook_nb.tools.written import read_value, split_argument

DECLARED = {
    "host": {"type": "string"},
    "days": {"type": "integer"},
    "deep": {"type": "boolean"},
    "names": {"type": "array", "items": {"type": "string"}},
    "limits": {"type": "object"},
    "either": {"type": ["string", "number"]},
}


@pytest.fixture(scope="module")
def tool():
    schema = {"type": "object", "properties": DECLARED, "required": ["host"]}
    return define_tool(name="ages", execute=lambda args: [], input_schema=schema)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("host", "db-1", "db-1"),
        ("host", "7", "7"),
        ("host", "true", "true"),
        ("host", '"quoted"', "quoted"),
        ("host", "", ""),
        ("days", "7", 7),
        ("days", "seven", "seven"),
        ("deep", "true", True),
        ("deep", "True", "True"),
        ("names", '["a", "b"]', ["a", "b"]),
        ("names", "a", "a"),
        ("limits", '{"days": 7}', {"days": 7}),
        ("either", "7", 7),
        ("either", "x", "x"),
        ("unknown", "7", 7),
        ("days", "NaN", "NaN"),
        ("days", "Infinity", "Infinity"),
        ("host", "[" * 100_000, "[" * 100_000),
        ("host", "__import__('os')", "__import__('os')"),
    ],
)
def test_a_value_is_what_fits_the_declaration(tool, name, text, value):
    read = read_value(tool, name, text)
    assert read == value
    assert type(read) is type(value)


@given(st.text())
def test_a_text_stays_that_text_or_the_text_it_quotes(text):
    tool = define_tool(
        name="ages",
        execute=lambda args: [],
        input_schema={"type": "object", "properties": {"host": {"type": "string"}}},
    )
    assert read_value(tool, "host", json.dumps(text)) == text
    assert isinstance(read_value(tool, "host", text), str)


@given(st.integers(-(2**70), 2**70))
def test_a_number_is_that_number(number):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = define_tool(name="ages", execute=lambda args: [], input_schema=schema)
    assert read_value(tool, "n", str(number)) == number


@pytest.mark.parametrize("written", ["host", "=x", ""])
def test_what_is_not_written_as_an_argument_is_refused(written):
    with pytest.raises(DefinitionError, match="write it as name=value"):
        split_argument(written)


def test_only_the_first_equals_sign_divides():
    assert split_argument("query=a=b=c") == ("query", "a=b=c")
    assert split_argument("query=") == ("query", "")
