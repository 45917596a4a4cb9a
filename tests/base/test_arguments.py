from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._arguments import (
    MAX_DEPTH,
    schema_problems,
    unchecked_keywords,
    validate_arguments,
)


def _obj(properties, **more):
    return {"type": "object", "properties": properties, **more}


def _faults(schema, value):
    """The faults of one argument called ``x``."""
    return [str(p) for p in validate_arguments(_obj({"x": schema}), {"x": value})]


def _fits(schema, value):
    return _faults(schema, value) == []


class TestWhatFits:
    @pytest.mark.parametrize(
        ("word", "good", "bad"),
        [
            ("string", ["", "a", "é"], [1, None, True, [], {}]),
            ("integer", [0, -1, 2.0, 10**40], [True, "1", 1.5, None]),
            ("number", [0, 1.5, -2], [True, "1", None]),
            ("boolean", [True, False], [0, 1, "true", None]),
            ("null", [None], [0, "", False, [], {}]),
            ("array", [[], [1], (1, 2)], ["ab", {}, None]),
            ("object", [{}, {"a": 1}], [[], "x", None]),
        ],
    )
    def test_each_type_takes_its_own_values_and_no_other(self, word, good, bad):
        assert all(_fits({"type": word}, value) for value in good)
        assert not any(_fits({"type": word}, value) for value in bad)

    def test_a_bool_is_never_a_number_and_never_equals_one(self):
        assert not _fits({"type": ["integer", "number"]}, True)
        assert not _fits({"enum": [1]}, True)
        assert not _fits({"const": 0}, False)
        assert _fits({"type": "array", "uniqueItems": True}, [1, True, 0, False])

    def test_numbers_are_equal_across_int_and_float(self):
        assert _fits({"enum": [1, 2]}, 1.0)
        assert not _fits({"type": "array", "uniqueItems": True}, [1, 1.0])

    def test_equality_looks_into_lists_and_mappings(self):
        assert _fits({"const": {"a": [1, {"b": None}]}}, {"a": [1, {"b": None}]})
        assert not _fits({"const": {"a": [1, {"b": None}]}}, {"a": [1, {"b": False}]})
        assert not _fits({"type": "array", "uniqueItems": True}, [{"a": 1}, {"a": 1}])

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_a_number_json_cannot_carry_is_refused(self, value):
        assert "JSON can carry" in _faults({"type": "number"}, value)[0]
        assert not _fits({"type": "integer"}, value)

    def test_values_of_python_are_judged_as_what_they_are_written_as(self):
        assert _fits({"type": "string", "format": "date"}, date(2026, 1, 2))
        assert _fits({"type": "string", "format": "date-time"}, datetime(2026, 1, 2, tzinfo=UTC))
        assert _fits({"type": "string", "format": "duration"}, timedelta(days=1, seconds=2))
        assert _fits({"type": "string", "format": "uuid"}, UUID(int=7))
        assert _fits({"type": "string"}, Decimal("0.10"))
        assert _fits({"type": "array", "items": {"type": "string"}}, {"b", "a"})
        assert _fits({"type": "integer"}, np.int64(3))
        assert _fits({"type": "number"}, np.float64(3.5))
        assert _fits({"type": "boolean"}, np.bool_(True))

    def test_a_value_with_no_json_form_fits_only_a_schema_that_asks_for_nothing(self):
        assert _fits({}, object())
        assert _faults({"type": "string"}, object()) == [
            "x: must be string, not a value of type object"
        ]
        assert not _fits({"enum": ["<object>"]}, object())


class TestEachKeyword:
    @pytest.mark.parametrize(
        ("schema", "good", "bad", "said"),
        [
            ({"minimum": 1}, 1, 0, "must be at least 1, and is 0"),
            ({"maximum": 1}, 1, 2, "must be at most 1, and is 2"),
            ({"exclusiveMinimum": 1}, 2, 1, "must be more than 1, and is 1"),
            ({"exclusiveMaximum": 1}, 0, 1, "must be less than 1, and is 1"),
            ({"multipleOf": 0.1}, 0.3, 0.35, "must be a multiple of 0.1, and is 0.35"),
            ({"minLength": 2}, "ab", "a", "must have at least 2 characters, and has 1"),
            ({"maxLength": 2}, "é\u0301", "abc", "must have at most 2 characters, and has 3"),
            ({"pattern": "^a+$"}, "aa", "ab", 'must match the pattern ^a+$, and is "ab"'),
            ({"minItems": 1}, [0], [], "must hold at least 1 item, and holds 0"),
            ({"maxItems": 1}, [0], [1, 2], "must hold at most 1 item, and holds 2"),
            ({"uniqueItems": True}, [1, 2], [1, 1], "must not hold the same item twice"),
            ({"minProperties": 1}, {"a": 1}, {}, "must hold at least 1 name, and holds 0"),
            ({"maxProperties": 0}, {}, {"a": 1}, "must hold at most 0 names, and holds 1"),
            ({"const": "a"}, "a", "b", 'must be "a", and is "b"'),
            ({"not": {"type": "null"}}, 1, None, "has a form that is excluded"),
            (False, None, 1, "nothing may be given here"),
        ],
    )
    def test_is_judged_and_says_limit_and_value(self, schema, good, bad, said):
        if schema is not False:
            assert _fits(schema, good)
        assert _faults(schema, bad) == [f"x: {said}"]

    @pytest.mark.parametrize(
        ("name", "good", "bad"),
        [
            ("date", ["2026-02-28"], ["2026-02-30", "2026-2-3", "20260203", "2026-W01-1", ""]),
            (
                "date-time",
                ["2026-02-28T10:00:00Z", "2026-02-28T10:00:00+02:00"],
                ["2026-02-28", "x"],
            ),
            ("time", ["10:00", "10:00:01"], ["25:00", ""]),
            ("duration", ["P1D", "PT1H30M", "P1W", "-P1DT2H", "PT0.5S"], ["P", "PT", "1D", "P1H"]),
            ("uuid", ["00000000-0000-0000-0000-000000000007"], ["x", ""]),
        ],
    )
    def test_formats_we_write_are_checked(self, name, good, bad):
        schema = {"type": "string", "format": name}
        assert [text for text in good if not _fits(schema, text)] == []
        assert [text for text in bad if _fits(schema, text)] == []

    def test_a_dollar_never_matches_before_a_final_newline(self):
        assert not _fits({"pattern": "^a$"}, "a\n")
        assert _fits({"pattern": r"^[$]\$$"}, "$$")

    def test_digits_of_a_pattern_are_ascii(self):
        assert not _fits({"pattern": r"^\d$"}, "٣")

    def test_tuples_are_judged_place_by_place(self):
        schema = {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}
        assert _fits(schema, ["a", 1])
        assert _faults(schema, [1, "a", 0]) == [
            "x[0]: must be string, not integer",
            "x[1]: must be integer, not string",
            "x[2]: nothing may be given here",
        ]

    def test_names_by_pattern_and_rest(self):
        schema = {
            "patternProperties": {"^n_": {"type": "integer"}},
            "additionalProperties": {"type": "string"},
            "propertyNames": {"maxLength": 3},
        }
        assert _fits(schema, {"n_1": 1, "s": "a"})
        assert _faults(schema, {"n_1": "a", "s": 1, "long": "b"}) == [
            "x.n_1: must be integer, not string",
            "x.s: must be string, not integer",
            "x.long: as a name, must have at most 3 characters, and has 4",
        ]

    def test_references_lead_to_definitions(self):
        schema = _obj(
            {"node": {"$ref": "#/$defs/a~1b"}},
            **{
                "$defs": {"a/b": _obj({"next": {"$ref": "#/$defs/a~1b"}, "n": {"type": "integer"}})}
            },
        )
        assert validate_arguments(schema, {"node": {"n": 1, "next": {"next": {"n": 2}}}}) == []
        found = validate_arguments(schema, {"node": {"next": {"next": {"n": "2"}}}})
        assert [p.where for p in found] == ["node.next.next.n"]

    def test_all_of_says_every_fault(self):
        assert len(_faults({"allOf": [{"minimum": 5}, {"multipleOf": 2}]}, 3)) == 2

    def test_one_of_refuses_a_value_that_fits_two(self):
        schema = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
        assert _fits(schema, 1.5)
        assert _faults(schema, 1) == ["x: must fit one of the forms, and fits 2"]

    def test_any_of_says_the_faults_of_the_form_that_was_meant(self):
        schema = {"anyOf": [_obj({"n": {"type": "integer"}}, required=["n"]), {"type": "null"}]}
        assert _faults(schema, {"n": "1"}) == ["x.n: must be integer, not string"]

    def test_any_of_lists_the_forms_when_none_was_meant(self):
        schema = {"anyOf": [{"type": "integer"}, {"const": "all"}, {"enum": [None]}]}
        assert _faults(schema, []) == ['x: must be integer, "all" or null, and is []']


class TestNames:
    SCHEMA = _obj(
        {"cluster": {"type": "string"}, "days": {"type": "integer"}},
        required=["cluster"],
        additionalProperties=False,
    )

    def test_what_is_required_and_what_is_unknown_are_said_with_the_near_match(self):
        assert [str(p) for p in validate_arguments(self.SCHEMA, {"clustr": "a"})] == [
            "cluster: is required; did you write 'clustr' for it?",
            "clustr: is not among the names that can be given; did you mean 'cluster'?",
        ]

    def test_an_unknown_name_like_no_other_is_answered_with_the_list(self):
        found = validate_arguments(self.SCHEMA, {"cluster": "a", "zzz": 1})
        assert found[0].fix == "those are cluster and days"
        empty = validate_arguments(_obj({}, additionalProperties=False), {"zzz": 1})
        assert empty[0].fix == "none can be"

    def test_an_open_schema_takes_any_name(self):
        assert validate_arguments({"type": "object", "properties": {}}, {"anything": object}) == []

    def test_nested_faults_carry_their_path(self):
        rows = {"type": "array", "items": self.SCHEMA}
        found = validate_arguments(
            _obj({"rows": rows}), {"rows": [{"cluster": "a"}, {"cluster": 1}]}
        )
        assert [(p.where, p.message) for p in found] == [
            ("rows[1].cluster", "must be string, not integer")
        ]

    def test_arguments_that_are_no_mapping_are_one_problem(self):
        assert [str(p) for p in validate_arguments(self.SCHEMA, ["a"])] == [
            "must be object, not array"
        ]

    def test_a_name_that_is_not_text_is_refused(self):
        found = validate_arguments({"type": "object"}, {1: 2})
        assert [p.message for p in found] == ["the name 1 is not text"]

    def test_hostile_names_and_values_are_shown_neutralised_and_cut(self):
        name = "\x1b[31m\u202e" + "n" * 500
        found = validate_arguments(self.SCHEMA, {"cluster": "a", name: 1})
        assert "\x1b" not in str(found[0])
        assert "\u202e" not in str(found[0])
        assert len(str(found[0])) < 300
        assert "\x1b" not in _faults({"enum": ["a"]}, "\x1b[31m")[0]

    def test_a_misspelt_choice_is_answered_with_the_near_one(self):
        assert _faults({"enum": ["protected", "declined"]}, "declind") == [
            'x: must be "protected" or "declined", and is "declind"; did you mean \'declined\'?'
        ]


class TestLimitsOfTheJudge:
    def test_nesting_past_the_limit_is_refused_not_passed(self):
        schema = _obj({"next": {"$ref": "#"}})
        value: dict = {}
        for _ in range(MAX_DEPTH * 2):
            value = {"next": value}
        found = validate_arguments(schema, value)
        assert [p.message for p in found] == [f"is nested deeper than {MAX_DEPTH} levels"]

    def test_a_value_that_contains_itself_ends_in_a_refusal(self):
        value: dict = {}
        value["next"] = value
        assert validate_arguments(_obj({"next": {"$ref": "#"}}), value) != []

    def test_a_reference_that_points_at_itself_ends_in_a_refusal(self):
        schema = _obj({"x": {"$ref": "#/$defs/a"}}, **{"$defs": {"a": {"$ref": "#/$defs/a"}}})
        assert "nested deeper" in validate_arguments(schema, {"x": 1})[0].message


class TestUncheckedKeywords:
    def test_every_keyword_that_is_not_judged_is_named_with_its_place(self):
        schema = _obj(
            {
                "to": {"type": "string", "format": "email"},
                "rows": {"type": "array", "items": {"contains": {}}},
                "far": {"$ref": "https://example.org/schema"},
            },
            **{"if": {}, "requred": ["to"]},
        )
        assert unchecked_keywords(schema) == [
            "if",
            "properties.far.$ref=https://example.org/schema",
            "properties.rows.items.contains",
            "properties.to.format=email",
            "requred",
        ]

    def test_descriptions_and_custom_notes_are_no_keywords_to_check(self):
        schema = _obj({"a": {"title": "A", "examples": [1], "x-order": 2}}, description="d")
        assert unchecked_keywords(schema) == []

    def test_an_argument_may_have_the_name_of_a_keyword(self):
        assert unchecked_keywords(_obj({"if": {"type": "string"}, "contains": {}})) == []


class TestSchemaProblems:
    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            (["type"], "a schema is a mapping, not list"),
            ({}, 'arguments are an object; write "type": "object" at the top'),
            ({"type": "array"}, 'arguments are an object; write "type": "object" at the top'),
            (
                _obj({"a": {"type": "str"}}),
                "properties.a.type: 'str' is not a JSON type; did you mean 'string'?",
            ),
            (_obj({"a": {"type": []}}), "properties.a.type: no type is named"),
            (_obj({"a": {"type": 3}}), "properties.a.type: 3 is not a JSON type"),
            (_obj({"a": "string"}), "properties: must map names to schemas"),
            (_obj({}, required="a"), "required: must be a list of names"),
            (_obj({"a": {"enum": []}}), "properties.a.enum: must list the values"),
            (_obj({"a": {"pattern": "("}}), "properties.a.pattern: this pattern cannot be read"),
            (_obj({"a": {"minimum": "1"}}), "properties.a.minimum: must be a number"),
            (_obj({"a": {"minimum": True}}), "properties.a.minimum: must be a number"),
            (_obj({"a": {"anyOf": []}}), "properties.a.anyOf: must be a list of schemas"),
            (_obj({"a": {"items": [{}]}}), "properties.a.items: must be a schema"),
            (_obj({"a": {"$ref": "#/$defs/b"}}), "properties.a.$ref: points at nothing"),
            (_obj({"a": {"$ref": 1}}), "properties.a.$ref: must be text"),
        ],
    )
    def test_each_fault_is_named_with_its_place(self, schema, said):
        found = schema_problems(schema)
        assert len(found) == 1
        assert str(found[0]).startswith(said)

    def test_a_sound_schema_has_none(self):
        assert schema_problems(_obj({"a": {"$ref": "#"}, "b": True, "c": {"if": 1}})) == []

    def test_what_a_chart_gives_may_be_of_any_type(self):
        assert schema_problems({"type": "array"}) != []
        assert schema_problems({"type": "array", "items": {}}, any_type=True) == []
        assert schema_problems({}, any_type=True) == []
        assert [p.where for p in schema_problems({"type": "rows"}, any_type=True)] == ["type"]
        assert schema_problems([], any_type=True) != []


# -- the same answers as the reference implementation ------------------------------------------

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.floats(-4, 4, allow_nan=False).map(lambda x: round(x, 1)),
    st.text("ab1", max_size=3),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
_words = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_small = st.integers(0, 3)
_leaf_schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(_words, st.lists(_words, min_size=1, max_size=2, unique=True)),
        "enum": st.lists(_values, min_size=1, max_size=3),
        "const": _values,
        "minimum": st.integers(-3, 3),
        "maximum": st.integers(-3, 3),
        "exclusiveMinimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.integers(1, 3),
        "minLength": _small,
        "maxLength": _small,
        "pattern": st.sampled_from(["^a", "b$", "^[ab]*$", "1", r"\d"]),
        "minItems": _small,
        "maxItems": _small,
        "uniqueItems": st.booleans(),
        "minProperties": _small,
        "maxProperties": _small,
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    },
)


def _grown(inner):
    several = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    deeper = st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "prefixItems": several,
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "c"]), inner, max_size=1),
            "additionalProperties": inner,
            "propertyNames": st.just({"maxLength": 1, "pattern": "^[ab]"}),
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": inner,
            "$ref": st.just("#/$defs/d"),
        },
    )
    return st.tuples(_leaf_schemas, deeper).map(lambda parts: {**parts[0], **parts[1]})


_schemas = st.recursive(st.one_of(st.booleans(), _leaf_schemas), _grown, max_leaves=5)


@given(_schemas, _leaf_schemas, _values)
def test_accepts_exactly_what_the_reference_implementation_accepts(schema, defined, value):
    root = {"type": "object", "properties": {"x": schema}, "$defs": {"d": defined}}
    expected = jsonschema.Draft202012Validator(root).is_valid({"x": value})
    assert (validate_arguments(root, {"x": value}) == []) is expected
    assert schema_problems(root) == []
    assert unchecked_keywords(root) == []


@given(_schemas, _values)
def test_says_the_same_again_and_always_says_where(schema, value):
    root = {"type": "object", "properties": {"x": schema}, "$defs": {"d": {}}}
    first = validate_arguments(root, {"x": value})
    assert first == validate_arguments(root, {"x": value})
    assert all(problem.where and problem.where.startswith("x") for problem in first)
