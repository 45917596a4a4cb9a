"""Claims: what they cover, when two values agree, how many like ones are told."""

import pytest

from runbook_nb.record.claims import (
    ANY,
    CONFIRMED,
    CONTRADICTED,
    EACH,
    NAMED,
    UNCHECKED,
    Claim,
    Claims,
    Outcome,
    agrees,
    covers,
    place_text,
    same,
)


def made(**more):
    options = {"id": "x", "claimed": "c", "status": CONFIRMED, "basis": "the rows"}
    return Claim(**{**options, **more})


# --- places ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cover", "place", "covered"),
    [
        (("a",), ("a",), True),
        (("a",), ("a", "b", 3), True),
        (("a", "b"), ("a",), False),
        (("a",), ("b",), False),
        (("a", ANY), ("a", 7), True),
        (("a", ANY, "x"), ("a", 7, "y"), False),
        (("a", frozenset({1, 2})), ("a", 2, "x"), True),
        (("a", frozenset({1, 2})), ("a", 3), False),
        (("a", range(3)), ("a", 2), True),
        (("a", ANY), ("a", "name"), False),
        ((), ("a",), True),
    ],
)
def test_a_cover_is_about_its_place_and_what_is_inside(cover, place, covered):
    assert covers(cover, place) is covered


def test_places_are_written_as_paths():
    assert place_text(("result", "verdicts", 3, "verdict")) == "result.verdicts[3].verdict"
    assert place_text(("dossier", "subjects", frozenset({1}), "told")) == "dossier.subjects[*].told"


# --- agreeing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected", "agreed"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        (None, 0, False),
        ("a", "a", True),
        ("a", "b", False),
        ("[REDACTED] rows", "three rows", True),
        ("[REDACTED] rows", "three rowsx", False),
        ("a [REDACTED]", "b c", False),
        (["a", 1], ("a", 1), True),
        (["a", 1], ["a", True], False),
        ({"a": "[REDACTED]"}, {"a": "secret"}, True),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_what_is_hidden_in_what_was_found_agrees_with_anything(found, expected, agreed):
    assert agrees(found, expected) is agreed


def test_rows_are_the_same_to_the_letter():
    assert same({"a": [1, None]}, {"a": (1, None)})
    assert not same({"a": "[REDACTED]"}, {"a": "secret"})
    assert not same({"a": 1}, {"a": True})


# --- telling -----------------------------------------------------------------------------------


def test_a_claim_says_its_status_in_one_sentence():
    assert made().sentence == "x is confirmed by the rows"
    unchecked = made(status=UNCHECKED, because="it is hidden", basis="")
    assert unchecked.sentence == "x cannot be checked, because it is hidden"
    wrong = made(status=CONTRADICTED, expected=3, found=4)
    assert wrong.sentence == "x is contradicted by the rows: 4 was found, 3 expected"
    assert made(status=CONTRADICTED, expected="a").difference == "nothing was found, a expected"


def test_a_claim_is_written_without_what_does_not_apply():
    assert made().to_dict() == {
        "id": "x",
        "claimed": "c",
        "status": "confirmed",
        "basis": "the rows",
        "covers": [],
    }
    told = made(status=CONTRADICTED, expected={1, 2}, found=None, count=3).to_dict()
    assert (told["expected"], told["found"], told["count"]) == ([1, 2], None, 3)


def test_control_characters_in_a_forged_value_are_shown_as_such():
    wrong = made(status=CONTRADICTED, expected="a", found="\x1b[31mred")
    assert "\x1b" not in wrong.sentence
    assert "\\x1b[31mred" in wrong.sentence


def test_a_check_says_what_differs_only_where_something_does():
    claims = Claims()
    assert claims.check("a", "c", 1, 1, "b", ("p",))
    assert not claims.check("b", "c", 1, 2, "b", ("q",))
    held, broken = claims.made
    assert (held.status, held.found, held.expected) == ("confirmed", None, None)
    assert (broken.status, broken.found, broken.expected) == ("contradicted", 1, 2)
    assert broken.covers == (("q",),)


def test_what_is_wrong_in_itself_is_said_instead_of_two_values():
    claims = Claims()
    assert not claims.settle("a", "c", False, "the digest", said="it was \x07 changed")
    assert claims.settle("b", "c", True, "the digest", said="it was changed")
    broken, held = claims.made
    assert broken.sentence == "a is contradicted by the digest: it was \\x07 changed"
    assert broken.to_dict()["said"] == "it was \x07 changed"
    assert (held.said, held.difference) == ("", "")
    assert "said" not in held.to_dict()
    assert "it was \\x07 changed" in str(broken)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("cells", 1, "outputs", 0, "data", "text/html"), "output 1 of cell 2"),
        (("cells", 0, "source"), "cell 1"),
        (("page", "text/html"), "the page"),
        (("result", "verdicts", 3), "result.verdicts[3]"),
    ],
)
def test_a_place_is_named_as_people_look_for_it(place, words):
    assert made(covers=(place, place)).where == words


def test_of_many_places_ten_are_named():
    covers = tuple(("cells", number, "source") for number in range(12))
    assert made(covers=covers).where.endswith("cell 9, cell 10 and 2 more")
    assert made().where == ""


# --- many --------------------------------------------------------------------------------------


def many(count, singly=True, **places):
    claims = Claims()
    outcomes = [
        Outcome(status, places.get(name, ()), f"why {name}", lambda place: ("e", f"f{place}"))
        for name, status in (("bad", CONTRADICTED), ("good", CONFIRMED), ("open", UNCHECKED))
    ]
    claims.many(
        "kind",
        "it is so",
        outcomes,
        lambda place: f"n{place}",
        lambda places: (("rows", places),),
        singly=singly,
    )
    return claims.made


def test_few_things_are_told_one_by_one():
    claims = many(3, bad=[0], good=[1], open=[2])
    assert [(claim.id, claim.status) for claim in claims] == [
        ("kind[n0]", "contradicted"),
        ("kind[n1]", "confirmed"),
        ("kind[n2]", "cannot be checked"),
    ]
    assert claims[0].found == "f0"
    assert claims[2].because == "why open"
    assert claims[1].covers == (("rows", 1),)


def test_many_things_are_told_together_by_how_they_fared():
    total = EACH + 10
    claims = many(total, bad=range(3), good=range(3, total))
    assert [(claim.id, claim.status, claim.count) for claim in claims] == [
        ("kind", "contradicted", 3),
        ("kind#2", "confirmed", total - 3),
    ]
    assert claims[0].found == {"n0": "f0", "n1": "f1", "n2": "f2"}
    assert claims[1].claimed.startswith(f"it is so: {total - 3}, n3, n4")
    assert claims[1].claimed.endswith(f"and {total - 3 - NAMED} more")
    assert covers(claims[0].covers[0], ("rows", 2))
    assert not covers(claims[0].covers[0], ("rows", 3))


def test_what_is_right_may_be_told_together_however_few():
    claims = many(4, singly=False, bad=[0], good=[1, 2], open=[3])
    assert [claim.id for claim in claims] == ["kind[n0]", "kind", "kind#2"]


def test_nothing_is_told_of_nothing():
    assert many(0) == []
