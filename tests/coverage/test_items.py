"""Items: strict where somebody declares, lenient where something is read back, one merge."""

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb._frozen import freeze
from runbook_nb.coverage import REFUSAL_MARK, Item, merge_items, read_items
from runbook_nb.coverage.items import normalize
from runbook_nb.errors import DefinitionError

words = st.text(st.sampled_from("ab \u00e9"), min_size=1, max_size=3).filter(str.strip)
items = st.builds(Item, words, st.none() | words)
item_lists = st.lists(st.lists(items, max_size=6), max_size=5)


def refusal_of(*args, **kwargs) -> DefinitionError:
    with pytest.raises(DefinitionError) as caught:
        normalize(*args, **kwargs)
    assert str(caught.value).startswith(REFUSAL_MARK)
    assert caught.value.code == "bad_coverage"
    return caught.value


def test_case_36_merging_keeps_the_first_of_equal_items_in_order():
    a, aw, b = {"what": "a"}, {"what": "a", "why": "w"}, {"what": "b"}
    assert merge_items([[a], [a, aw, b]]) == (Item("a"), Item("a", "w"), Item("b"))


def test_merging_nothing_gives_nothing():
    assert merge_items([]) == merge_items([[], None, ()]) == ()


@trials(deadline=None)
@given(item_lists)
def test_merging_is_idempotent_and_loses_nothing(lists):
    merged = merge_items(lists)
    assert merge_items([merged, *lists, merged]) == merged
    assert set(merged) == {item for one in lists for item in one}
    assert len(set(merged)) == len(merged)


@trials(deadline=None)
@given(item_lists, item_lists)
def test_merging_in_two_steps_is_merging_at_once(left, right):
    assert merge_items([merge_items(left), merge_items(right)]) == merge_items([*left, *right])


@trials(deadline=None)
@given(item_lists)
def test_merging_keeps_the_order_of_first_occurrence(lists):
    flat = [item for one in lists for item in one]
    merged = merge_items(lists)
    places = [flat.index(item) for item in merged]
    assert places == sorted(places)


@trials(deadline=None)
@given(st.lists(items))
def test_what_was_declared_reads_back_the_same(declared):
    wire = [item.to_dict() for item in declared]
    assert normalize("checked", wire) == read_items(wire) == tuple(declared)


def test_an_item_strips_its_texts_and_never_changes():
    item = Item("  a ", why=" b ")
    assert (item.what, item.why) == ("a", "b")
    with pytest.raises(AttributeError):
        item.what = "c"
    assert freeze(item) is item


@pytest.mark.parametrize("args", [("",), (" \t\n",), (None,), (7,), (b"a",), ("a", ""), ("a", 5)])
def test_an_item_refuses_blank_texts_and_other_types(args):
    with pytest.raises(DefinitionError, match=r"^Refused: Item\.wh(at|y) must be a text"):
        Item(*args)


def test_an_item_without_why_has_no_such_key_on_the_wire():
    assert Item("a").to_dict() == {"what": "a"}
    assert list(Item("a", "b").to_dict()) == ["what", "why"]


def test_texts_mappings_and_items_mix_in_one_list():
    mixed = (" a ", {"what": " b ", "why": " c "}, Item("d"), freeze({"what": "e"}))
    assert normalize("checked", mixed) == (Item("a"), Item("b", "c"), Item("d"), Item("e"))


def test_none_is_an_empty_list():
    assert normalize("checked", None) == ()


@pytest.mark.parametrize("values", ["abc", {"what": "a"}, {"a"}, 5, Item("a"), iter(["a"]), True])
def test_only_lists_and_tuples_are_lists(values):
    error = refusal_of("not_checked", values)
    assert "not_checked must be a list" in str(error)
    assert "not_checked=[…]" in str(error)


@pytest.mark.parametrize("value", ["", "  ", None, 3, ["a"], ("a",), object(), b"a"])
def test_a_refusal_names_section_and_index(value):
    error = refusal_of("checked", ["fine", value])
    assert error.where == "checked[1]"
    assert "checked[1]" in str(error)


@pytest.mark.parametrize("what", ["", " ", None, 7, ["a"]])
def test_a_mapping_needs_a_what_that_is_not_blank(what):
    assert refusal_of("checked", [{"what": what}]).where == "checked[0].what"
    assert refusal_of("checked", [{}]).where == "checked[0].what"


@pytest.mark.parametrize("why", ["", "  ", 5, ["b"], False])
def test_a_why_that_is_given_must_say_something(why):
    error = refusal_of("checked", [{"what": "the tapes", "why": why}])
    assert error.where == "checked[0].why"
    assert "the tapes" in str(error)


def test_a_why_of_none_is_one_left_out():
    assert normalize("checked", [{"what": "a", "why": None}]) == (Item("a"),)


@pytest.mark.parametrize(
    "value", ["blind", {"what": "blind"}, Item("blind"), {"what": "blind", "why": None}]
)
def test_where_a_why_is_needed_every_spelling_without_one_is_refused(value):
    error = refusal_of("cannot_cover", [value], require_why=True)
    assert "cannot_cover[0]" in str(error)
    assert '"blind"' in str(error)
    assert "why" in error.fix


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("What", "did you mean 'what'?"),
        ("wy", "did you mean 'why'?"),
        ("reason", "its keys are what and why"),
        (7, "its keys are what and why"),
    ],
)
def test_an_unknown_key_is_refused_with_the_likely_one(key, fix):
    error = refusal_of("checked", [{"what": "a", key: "b"}])
    assert "unknown key" in str(error)
    assert error.fix == fix


def test_refused_values_are_shown_short_and_harmless():
    error = refusal_of("checked", [{"what": "a", "\x1b[31m" + "k" * 5000: 1}])
    assert "\x1b" not in str(error)
    assert len(str(error)) < 250


@pytest.mark.parametrize("values", [None, "abc", {"a": 1}, {"a"}, 5, iter(["a"]), Item("a")])
def test_reading_back_something_that_is_no_list_gives_nothing(values):
    assert read_items(values) == ()


def test_reading_back_keeps_what_is_readable_and_drops_the_rest():
    unreadable = ["", " ", None, 7, ["x"], {}, {"what": 3}, {"what": " "}, {"why": "w"}]
    mappings = [
        {"what": " b ", "why": 5},
        {"what": "c", "why": " d "},
        {"what": "e", "why": ""},
        {"what": "f", "other": 1},
    ]
    found = read_items([*unreadable, " a ", *mappings, *unreadable, Item("g")])
    assert found == (Item("a"), Item("b"), Item("c", "d"), Item("e"), Item("f"), Item("g"))
