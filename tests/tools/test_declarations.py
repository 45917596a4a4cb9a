from __future__ import annotations

import json

import pydantic
import pytest

from runbook_nb.errors import DefinitionError
from runbook_nb.tools import (
    assert_composed_of,
    assert_gates,
    define_tool,
    read_served_declarations,
    served_declarations,
    tool,
)


def _tool(**more):
    return define_tool(**{"name": "t", "description": "d", "execute": lambda args: args, **more})


def _refusal(**more) -> DefinitionError:
    with pytest.raises(DefinitionError) as caught:
        _tool(**more)
    return caught.value


class TestNames:
    RULE = "1 to 64 letters (A-Z, a-z), digits, '_' or '-'"

    @pytest.mark.parametrize(
        "name",
        ["Backup triage!", "резервная", "a" * 100, "", "   ", "a.b", "ok\n", "a\x00", 3, None, "é"],
    )
    def test_what_a_provider_would_refuse_is_refused_with_the_rule(self, name):
        error = _refusal(name=name)
        assert error.code == "bad_tool_name"
        assert error.where == "name"
        assert self.RULE in str(error)
        assert "name" in str(error)

    @pytest.mark.parametrize("name", ["a", "A-b_9", "a" * 64])
    def test_what_every_provider_takes_passes(self, name):
        assert _tool(name=name).name == name

    def test_a_usable_spelling_is_proposed(self):
        assert "for example 'Backup_triage'" in str(_refusal(name="Backup triage!"))
        assert "has 100 characters" in str(_refusal(name="a" * 100))
        assert "give one with name=" in str(_refusal(name="резервная"))

    def test_a_lambda_must_be_given_a_name(self):
        with pytest.raises(DefinitionError, match="<lambda>"):
            tool(lambda x: x)
        assert tool(name="same")(lambda x: x).execute_sync({"x": 1}) == 1

    def test_a_missing_name_is_said(self):
        with pytest.raises(DefinitionError, match="name is required"):
            define_tool(description="d", execute=lambda args: args)


#: Every declaration wrong, in the order in which they are judged.
WRONG = {
    "name": "bad name",
    "description": 3,
    "execute": "no callable",
    "input_schema": [],
    "result_ceiling": {},
    "result_class": "list",
    "result_kind": " ",
    "check_in": "sometimes",
    "wants": {},
    "needs": {},
    "owner": {},
    "arguments_from": [],
    "composed_of": [],
    "gates": "yes",
}


class TestOrder:
    def test_the_first_fault_in_the_fixed_order_is_the_one_that_is_named(self):
        wrong = dict(WRONG)
        for field in WRONG:
            error = _refusal(**wrong)
            assert (error.where or "").partition(".")[0] == field
            del wrong[field]
        _tool(**wrong)


class TestFields:
    def test_an_unknown_field_is_refused_with_the_near_one(self):
        error = _refusal(compose_of=["a"])
        assert "did you mean 'composed_of'?" in str(error)
        assert "those are" in str(_refusal(zzzz=1))

    def test_the_body_is_required(self):
        with pytest.raises(DefinitionError, match="execute is required"):
            define_tool(name="t", description="d")

    def test_the_default_schema_is_an_object_of_which_nothing_is_said(self):
        assert _tool().schema.input_schema == {"type": "object", "properties": {}}
        assert json.dumps(_tool().input_schema) == '{"type": "object", "properties": {}}'

    def test_the_schema_is_a_copy_that_cannot_change(self):
        given = {"type": "object", "properties": {"a": {"type": "string"}}}
        made = _tool(input_schema=given)
        given["properties"]["a"]["type"] = "integer"
        assert made.input_schema["properties"]["a"]["type"] == "string"
        with pytest.raises(TypeError):
            made.input_schema["properties"]["b"] = {}

    def test_a_pydantic_model_gives_its_own_schema(self):
        class Args(pydantic.BaseModel):
            days: int

        assert _tool(input_schema=Args).input_schema["required"] == ["days"]

    def test_a_schema_that_is_none_is_refused_with_every_fault(self):
        error = _refusal(
            input_schema={"type": "object", "properties": {"a": {"type": "x"}, "b": {"enum": 1}}}
        )
        assert [p.where for p in error.problems] == ["properties.a.type", "properties.b.enum"]

    def test_declarations_are_readable_unchanged(self):
        made = _tool(
            result_class="triage",
            owner={"kind": "custom", "id": "ops"},
            result_ceiling={"max_chars": 50000},
            arguments_from=["inv"],
            composed_of=["inv"],
            result_kind="verdict/x",
        )
        assert made.result_class == "triage"
        assert made.owner == {"kind": "custom", "id": "ops"}
        assert made.result_ceiling == {"max_chars": 50000}
        assert made.arguments_from == ["inv"]
        assert made.composed_of == ["inv"]
        assert made.result_kind == "verdict/x"

    def test_lists_are_copied_and_cannot_change(self):
        names = ["inv"]
        made = _tool(composed_of=names)
        names.append("x")
        assert made.composed_of == ["inv"]
        with pytest.raises(TypeError):
            made.composed_of.append("y")


class TestResults:
    @pytest.mark.parametrize("kind", ["", "  ", 3, ["a"]])
    def test_a_kind_is_a_text_that_is_not_blank(self, kind):
        assert _refusal(result_kind=kind).where == "result_kind"

    def test_a_large_answer_has_a_kind_either_way(self):
        assert _tool().placed_kind == "tool-result/t"
        assert _tool(result_kind="verdict/x").placed_kind == "verdict/x"

    @pytest.mark.parametrize("given", ["Triage", "list", 1, "inventry"])
    def test_a_class_is_one_of_two(self, given):
        assert _refusal(result_class=given).where == "result_class"

    def test_a_near_class_is_proposed(self):
        assert "did you mean 'inventory'?" in str(_refusal(result_class="inventry"))

    @pytest.mark.parametrize("most", [0, -1, 1.5, 5.0, True, "10", None])
    def test_a_ceiling_is_a_whole_number_from_one(self, most):
        assert _refusal(result_ceiling={"max_chars": most}).where == "result_ceiling.max_chars"

    @pytest.mark.parametrize("narrow", [[], "days", ["days", " "], [1], None])
    def test_what_narrows_is_a_list_of_names(self, narrow):
        error = _refusal(result_ceiling={"max_chars": 1, "narrow_by": narrow})
        assert error.where == "result_ceiling.narrow_by"

    def test_both_spellings_of_a_ceiling_are_read(self):
        made = _tool(result_ceiling={"maxChars": 10, "narrowBy": ("days",)})
        assert made.result_ceiling == {"max_chars": 10, "narrow_by": ["days"]}

    def test_a_key_given_twice_or_misspelt_is_refused(self):
        assert "twice" in str(_refusal(result_ceiling={"maxChars": 1, "max_chars": 2}))
        assert "did you mean 'max_chars'?" in str(_refusal(result_ceiling={"max_char": 1}))
        assert "its keys are" in str(_refusal(result_ceiling={1: 2}))
        assert "must be a mapping" in str(_refusal(result_ceiling=5))


class TestOwnerAndNeeds:
    @pytest.mark.parametrize(
        "owner", [{}, {"kind": "team"}, {"kind": "", "id": "x"}, {"kind": "team", "id": 3}, "ops"]
    )
    def test_an_owner_has_a_kind_and_an_id(self, owner):
        assert _refusal(owner=owner).where.startswith("owner")

    @pytest.mark.parametrize(
        "needs",
        [
            {},
            {"credential": ""},
            {"credential": "x", "scopes": "read"},
            {"credential": "x", "mode": 1},
        ],
    )
    def test_a_need_names_its_credential(self, needs):
        assert _refusal(needs=needs).where.startswith("needs")

    def test_a_need_keeps_its_parts(self):
        needs = {"credential": "pager", "scopes": ("read",), "mode": "user"}
        assert _tool(needs=needs).needs == {
            "credential": "pager",
            "scopes": ["read"],
            "mode": "user",
        }

    def test_a_misspelt_key_is_answered_with_the_near_one(self):
        assert "did you mean 'credential'?" in str(_refusal(needs={"credentials": "x"}))


SCHEMA = {"type": "object", "properties": {"d": {"type": "string"}, "n": {"type": "integer"}}}


class TestWants:
    def test_a_tool_without_schema_cannot_want(self):
        error = _refusal(wants={"d": "dataset/rows"})
        assert error.where == "wants.d"
        assert "'d'" in str(error)

    def test_the_argument_must_be_declared_and_take_text(self):
        assert _tool(input_schema=SCHEMA, wants={"d": "k"}).wants == {"d": "k"}
        assert "no argument" in str(_refusal(input_schema=SCHEMA, wants={"zz": "k"}))
        assert "typed 'integer'" in str(_refusal(input_schema=SCHEMA, wants={"n": "k"}))
        untyped = {"type": "object", "properties": {"d": {}}}
        assert _tool(input_schema=untyped, wants={"d": "k"}).wants == {"d": "k"}

    def test_a_schema_that_lists_no_properties_lets_any_argument_be_wanted(self):
        assert _tool(input_schema={"type": "object"}, wants={"d": "k"}).wants == {"d": "k"}

    @pytest.mark.parametrize("wants", [{}, [], "d", {"d": " "}, {"d": 3}, {"": "k"}])
    def test_is_a_mapping_of_arguments_to_kinds(self, wants):
        assert _refusal(input_schema=SCHEMA, wants=wants).where.startswith("wants")

    def test_a_function_says_what_it_gets_and_asks_for_the_reference(self):
        @tool(wants={"rows": "dataset/rows"})
        def count(rows: list) -> int:
            "Count."
            return len(rows)

        assert count.input_schema["properties"]["rows"]["type"] == "string"


class TestCheckIn:
    @pytest.mark.parametrize("given", ["Always", "", True, 1, ["always"]])
    def test_is_always_or_a_callable(self, given):
        assert _refusal(check_in=given).where == "check_in"

    def test_both_forms_pass(self):
        assert _tool(check_in="always").check_in == "always"
        assert callable(_tool(check_in=lambda args, ctx: True).check_in)


class TestIngredients:
    @pytest.mark.parametrize("given", [[], (), "abc", [""], [" "], [1], [None], {"a": 1}, {"a"}])
    def test_are_a_list_of_names(self, given):
        for field in ("composed_of", "arguments_from"):
            error = _refusal(**{field: given})
            assert error.where == field
            assert field in str(error)

    def test_a_bare_string_is_not_read_letter_by_letter(self):
        assert "must be a list" in str(_refusal(composed_of="abc"))

    def test_an_empty_list_is_answered_with_leaving_it_out(self):
        assert "leave it out" in str(_refusal(composed_of=[]))

    def test_a_tool_is_not_its_own_ingredient(self):
        assert "its own ingredient" in str(_refusal(composed_of=["t"]))
        assert "feed itself" in str(_refusal(arguments_from=["t"]))

    def test_the_assert_alone_judges_the_same(self):
        assert_composed_of("t", None)
        assert_composed_of("t", ["a"])
        for bad in ([], "abc", [""], ["t"]):
            with pytest.raises(DefinitionError, match="composed_of"):
                assert_composed_of("t", bad)

    def test_whether_they_exist_is_not_judged_here(self):
        assert _tool(composed_of=["nowhere"]).composed_of == ["nowhere"]


class TestGates:
    @pytest.mark.parametrize("given", ["yes", 1, 0, [], "True"])
    def test_is_exactly_a_bool(self, given):
        assert _refusal(gates=given).where == "gates"
        with pytest.raises(DefinitionError, match="gates"):
            assert_gates("t", given)

    def test_false_is_a_declaration_and_silence_is_none(self):
        assert _tool(gates=False).gates is False
        assert _tool(gates=True).gates is True
        assert _tool().gates is None
        assert_gates("t", None)


class TestOthers:
    def test_blocking_is_a_bool_and_resume_callable(self):
        assert _refusal(blocking=1).where == "blocking"
        assert _refusal(resume="x").where == "resume"

    def test_every_refusal_names_the_tool(self):
        assert str(_refusal(gates="yes")).startswith("tool 't': gates")


class TestServing:
    def test_what_is_declared_travels_and_silence_does_not(self):
        assert served_declarations(_tool()) == {}
        assert served_declarations(_tool(gates=False)) == {"gates": False}
        both = served_declarations(_tool(composed_of=["a"], gates=True))
        assert json.dumps(both) == '{"composedOf": ["a"], "gates": true}'

    def test_what_was_served_makes_the_same_tool_again(self):
        one = _tool(composed_of=["a"], gates=True)
        kept, dropped = read_served_declarations("t", served_declarations(one))
        again = _tool(**kept)
        assert (again.composed_of, again.gates, dropped) == (["a"], True, {})

    @pytest.mark.parametrize(
        ("served", "bad"),
        [
            ({"composedOf": "abc", "gates": True}, "composedOf"),
            ({"composedOf": ["t"], "gates": True}, "composedOf"),
            ({"composedOf": ["a"], "gates": 1}, "gates"),
        ],
    )
    def test_a_bad_declaration_is_dropped_with_its_reason_and_the_tool_kept(self, served, bad):
        kept, dropped = read_served_declarations("t", served)
        assert list(dropped) == [bad]
        assert "'t'" in dropped[bad]
        _tool(**kept)

    def test_other_keys_and_nulls_are_not_read(self):
        assert read_served_declarations("t", {"composedOf": None, "x": 1}) == ({}, {})
