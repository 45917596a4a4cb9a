from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, Optional, Required, TypedDict, Union
from uuid import UUID

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError, ToolRefused
from runbook_nb.tools import ToolContext, tool, validate_arguments
from runbook_nb.tools.schema import parameter_docs, read_signature, summary_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Window:
    start: date
    hours: int = 24


class Host(TypedDict):
    name: str
    rack: NotRequired[int]


class Visit(TypedDict, total=False):
    when: Required[date]
    host: str


class Limit(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    most: int = pydantic.Field(ge=1, description="The most.")


def _schema(annotation: Any) -> dict[str, Any]:
    def f(x):
        return x

    f.__annotations__ = {"x": annotation}
    return read_signature(f, tool="t").schema


def _given(annotation: Any, value: Any) -> Any:
    """What a body receives for a JSON value."""

    def f(x):
        return x

    f.__annotations__ = {"x": annotation}
    signature = read_signature(f, tool="t")
    assert validate_arguments(signature.schema, {"x": value}) == []
    return signature.bind({"x": value}, ToolContext(), tool="t")[1]["x"]


PLAIN = [
    str,
    int,
    float,
    bool,
    None,
    Any,
    Optional[int],  # noqa: UP045 - the spelling is what is tested
    Union[str, int, None],  # noqa: UP007
    str | None,
    list,
    list[str],
    list[list[int]],
    dict,
    dict[str, Any],
    dict[str, list[int | None]],
    Sequence[str],
    Mapping[str, int],
    Literal["a", "b"],
    Literal["a"],
    Literal[1, "a", None, True],
]


class TestWhatIsWritten:
    @pytest.mark.parametrize("annotation", PLAIN, ids=str)
    def test_plain_annotations_are_written_as_pydantic_writes_them(self, annotation):
        ours = _schema(annotation)["properties"]["x"]
        assert ours == pydantic.TypeAdapter(annotation).json_schema()

    def test_plain_signatures_do_not_import_pydantic(self):
        code = (
            "import sys\n"
            "from runbook_nb.tools import tool\n"
            "@tool\n"
            "def t(a: str, b: list[int], c: dict[str, float] | None = None, *, d: bool = True):\n"
            "    'd'\n"
            "    return a\n"
            "assert t.execute_sync({'a': 'x', 'b': [1]}) == 'x'\n"
            "sys.exit('pydantic' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_the_whole_object_lists_what_is_required_and_closes_the_rest(self):
        def f(a: str, b: int = 7, *, c: bool, d: float = 0.5):
            return a, b, c, d

        assert read_signature(f, tool="t").schema == {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "integer", "default": 7},
                "c": {"type": "boolean"},
                "d": {"type": "number", "default": 0.5},
            },
            "required": ["a", "c"],
            "additionalProperties": False,
        }

    def test_a_function_without_parameters_takes_none(self):
        assert read_signature(lambda: 1, tool="t").schema == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_a_parameter_without_annotation_takes_anything(self):
        assert read_signature(lambda x: x, tool="t").schema["properties"] == {"x": {}}

    def test_keywords_open_the_object_to_what_they_are_annotated_with(self):
        def anything(**more):
            return more

        def numbers(**more: int):
            return more

        def days(**more: date):
            return more

        assert read_signature(anything, tool="t").schema["additionalProperties"] is True
        assert read_signature(numbers, tool="t").schema["additionalProperties"] == {
            "type": "integer"
        }
        assert read_signature(days, tool="t").schema["additionalProperties"]["format"] == "date"

    def test_typed_dicts_are_closed_and_know_what_is_required(self):
        assert _schema(Host)["properties"]["x"] == {
            "type": "object",
            "properties": {"name": {"type": "string"}, "rack": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": False,
        }

    def test_rich_types_share_definitions(self):
        def f(a: Window, b: list[Window], c: Colour = Colour.RED):
            return a, b, c

        schema = read_signature(f, tool="t").schema
        assert schema["properties"]["a"] == {"$ref": "#/$defs/Window"}
        assert schema["properties"]["b"]["items"] == {"$ref": "#/$defs/Window"}
        assert schema["properties"]["c"]["default"] == "red"
        assert schema["$defs"]["Window"]["additionalProperties"] is False
        assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
        json.dumps(schema)

    def test_two_classes_of_one_name_keep_their_own_definitions(self):
        def one():
            @dataclass
            class Item:
                a: int

            return Item

        def two():
            @dataclass
            class Item:
                b: str

            return Item

        def f(x, y):
            return x, y

        f.__annotations__ = {"x": one(), "y": two()}
        schema = read_signature(f, tool="t").schema
        assert validate_arguments(schema, {"x": {"a": 1}, "y": {"b": "c"}}) == []
        assert len(validate_arguments(schema, {"x": {"b": "c"}, "y": {"a": 1}})) == 4

    def test_a_pydantic_model_keeps_its_own_schema(self):
        schema = _schema(Limit)
        assert schema["$defs"]["Limit"]["properties"]["most"]["minimum"] == 1
        assert schema["$defs"]["Limit"]["properties"]["most"]["description"] == "The most."

    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (date, {"type": "string", "format": "date"}),
            (datetime, {"type": "string", "format": "date-time"}),
            (timedelta, {"type": "string", "format": "duration"}),
            (UUID, {"type": "string", "format": "uuid"}),
            (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        ],
        ids=str,
    )
    def test_richer_types(self, annotation, expected):
        assert _schema(annotation)["properties"]["x"] == expected

    def test_descriptions_come_from_the_annotation_first_then_the_docstring(self):
        def f(a: Annotated[str, "from the type"], b: Annotated[date, "a day"], c: int):
            """Do.

            Parameters
            ----------
            a : str
                From the docstring.
            c : int
                Counted.
            """
            return a, b, c

        properties = read_signature(f, tool="t").schema["properties"]
        assert [properties[name]["description"] for name in "abc"] == [
            "from the type",
            "a day",
            "Counted.",
        ]

    def test_constraints_of_pydantic_are_kept(self):
        annotation = Annotated[int, pydantic.Field(ge=1, description="At least one.")]
        assert _schema(annotation)["properties"]["x"] == {
            "type": "integer",
            "minimum": 1,
            "description": "At least one.",
        }

    def test_a_default_json_cannot_carry_is_left_out(self):
        def f(x=object()):  # noqa: B008
            return x

        assert read_signature(f, tool="t").schema["properties"] == {"x": {}}


class TestWhatIsRefused:
    def _refusal(self, function) -> str:
        with pytest.raises(DefinitionError) as caught:
            read_signature(function, tool="inv")
        assert caught.value.code == "bad_tool"
        assert "inv" in str(caught.value)
        return str(caught.value)

    def test_star_args(self):
        def f(*rows):
            return rows

        assert "*rows has no names" in self._refusal(f)

    def test_an_annotation_without_a_json_form(self):
        def f(frame: object, x: range):
            return frame, x

        assert "'x': range has no JSON form" in self._refusal(f)

    def test_an_annotation_that_names_nothing(self):
        def f(x: Nowhere):  # noqa: F821
            return x

        said = self._refusal(f)
        assert "'x'" in said
        assert "'Nowhere'" in said

    def test_two_contexts(self):
        def f(a: ToolContext, b: ToolContext):
            return a, b

        assert "second context" in self._refusal(f)


class TestWhatArrives:
    @pytest.mark.parametrize(
        ("annotation", "value", "expected"),
        [
            (date, "2026-01-02", date(2026, 1, 2)),
            (datetime, "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
            (timedelta, "P1DT2H", timedelta(days=1, hours=2)),
            (Decimal, "0.10", Decimal("0.10")),
            (UUID, str(UUID(int=7)), UUID(int=7)),
            (Colour, "blue", Colour.BLUE),
            (set[int], [2, 1], {1, 2}),
            (tuple[int, str], [1, "a"], (1, "a")),
            (tuple[int, ...], [1, 2], (1, 2)),
            (Window, {"start": "2026-01-02"}, Window(date(2026, 1, 2))),
            (list[Window] | None, None, None),
            (dict[str, date], {"a": "2026-01-02"}, {"a": date(2026, 1, 2)}),
            (Visit, {"when": "2026-01-02"}, {"when": date(2026, 1, 2)}),
            (list[Visit], [{"when": "2026-01-02"}], [{"when": date(2026, 1, 2)}]),
            (Visit | None, {"when": "2026-01-02"}, {"when": date(2026, 1, 2)}),
            (Limit, {"most": 3}, Limit(most=3)),
            (int, 2.0, 2),
        ],
        ids=str,
    )
    def test_the_body_receives_the_annotated_type(self, annotation, value, expected):
        found = _given(annotation, value)
        assert found == expected
        assert type(found) is type(expected)

    def test_a_value_that_is_the_annotated_type_already_is_kept(self):
        assert _given(date, date(2026, 1, 2)) == date(2026, 1, 2)
        assert _given(Decimal, Decimal("1.5")) == Decimal("1.5")

    def test_what_only_pydantic_can_judge_is_refused_with_its_place(self):
        def even(value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

        annotation = list[Annotated[int, pydantic.AfterValidator(even)]]

        def f(x):
            return x

        f.__annotations__ = {"x": annotation}
        signature = read_signature(f, tool="evens")
        with pytest.raises(ToolRefused) as caught:
            signature.bind({"x": [2, 3]}, ToolContext(), tool="evens")
        assert caught.value.code == "invalid_arguments"
        assert caught.value.problems[0].where == "x[1]"
        assert "must be even" in str(caught.value)

    def test_positional_only_parameters_are_passed_by_place(self):
        @tool
        def t(a: int, b: int = 2, /, c: int = 3) -> list[int]:
            "d"
            return [a, b, c]

        assert t.execute_sync({"c": 9, "a": 1}) == [1, 2, 9]
        assert t.execute_sync({"b": 5, "a": 1}) == [1, 5, 3]


class TestTheContext:
    def test_is_never_part_of_the_schema_whatever_the_spelling(self):
        def a(x: int, ctx: ToolContext):
            return ctx

        def b(x: int, where: ToolContext | None = None):
            return where

        def c(x: int, ctx: Annotated[ToolContext, "mine"]):
            return ctx

        def d(x: int, ctx: Optional["ToolContext"] = None):  # noqa: UP037, UP045
            return ctx

        for function, name in ((a, "ctx"), (b, "where"), (c, "ctx"), (d, "ctx")):
            signature = read_signature(function, tool="t")
            assert signature.context == name
            assert list(signature.schema["properties"]) == ["x"]

    def test_is_known_by_its_name_when_imported_for_type_checkers_only(self):
        namespace: dict[str, Any] = {}
        source = (
            "from __future__ import annotations\n"
            "def f(x: int, ctx: rb.ToolContext | None = None):\n"
            "    return ctx\n"
        )
        exec(compile(source, "elsewhere", "exec"), namespace)  # noqa: S102 - a module of its own
        signature = read_signature(namespace["f"], tool="t")
        assert signature.context == "ctx"

    def test_types_of_the_surrounding_function_are_found(self):
        class Here(TypedDict):
            n: int

        @tool
        def t(x: Here) -> int:
            "d"
            return x["n"]

        assert t.execute_sync({"x": {"n": 3}}) == 3


class TestWantedArguments:
    def test_ask_for_a_reference_whatever_the_data_is_annotated_as(self):
        def f(rows: list[dict], other: date | None = None):
            return rows, other

        schema = read_signature(f, tool="t", refs={"rows": "dataset/rows", "other": "k"}).schema
        assert schema["properties"]["rows"]["type"] == "string"
        assert "dataset/rows" in schema["properties"]["rows"]["description"]
        assert schema["properties"]["other"]["type"] == "string"
        assert "default" not in schema["properties"]["other"]
        assert schema["required"] == ["rows"]


class TestDocstrings:
    def test_the_summary_is_the_first_paragraph_on_one_line(self):
        assert summary_of("\n  One\n  two.\n\n  Three.\n") == "One two."
        assert summary_of("") == ""

    def test_parameters_stop_where_the_next_section_begins(self):
        doc = """Do.

        Parameters
        ----------
        a : int
            First.

            Still first.
        **more
            Rest.

        Returns
        -------
        b : int
            Not a parameter.
        """
        assert parameter_docs(doc) == {"a": "First. Still first.", "more": "Rest."}

    def test_a_docstring_of_another_style_gives_nothing(self):
        assert parameter_docs("Do.\n\nArgs:\n    a: first") == {}


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just("2026-01-02")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["name", "rack", "start", "hours"]), inner, max_size=2),
    ),
    max_leaves=4,
)


def _many(
    *,
    host: Host,
    window: Window | None = None,
    colour: Colour = Colour.RED,
    tags: set[str] = frozenset(),  # type: ignore[assignment]
    pair: tuple[int, str] | None = None,
    mode: Literal["a", "b"] = "a",
    counts: dict[str, int] | None = None,
):
    return host, window, colour, tags, pair, mode, counts


_MANY = read_signature(_many, tool="many")


@given(
    st.dictionaries(
        st.sampled_from(["host", "window", "colour", "tags", "pair", "mode", "counts", "x"]), _json
    )
)
def test_what_the_schema_takes_the_signature_can_bind_and_the_reference_agrees(args):
    accepted = validate_arguments(_MANY.schema, args) == []
    reference = jsonschema.Draft202012Validator(
        _MANY.schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    assert accepted is reference.is_valid(args)
    if accepted:
        _MANY.bind(args, ToolContext(), tool="many")


def test_every_schema_written_here_is_a_schema():
    for annotation in [*PLAIN, Host, Visit, Window, Colour, Limit, date, set[str]]:
        jsonschema.Draft202012Validator.check_schema(_schema(annotation))
