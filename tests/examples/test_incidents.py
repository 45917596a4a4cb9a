"""A matrix that nobody declared, one that somebody did, and what a matrix may not hide."""

from itertools import product

import pytest

import runbook_nb as rb
from runbook_nb import decide
from runbook_nb.errors import DefinitionError, RuleError, RunbookError
from runbook_nb.examples import incidents as shipped

FUNCTIONAL, INFORMATION, RECOVERABILITY = shipped.CATEGORIES.values()


def facts(functional="none", information=("none",), recoverability="regular"):
    return {
        "functional": functional,
        "information": "; ".join(information),
        "recoverability": recoverability,
    }


def matrix(*rules, default="later", version="ours-1"):
    return rb.RuleSet(
        "incident-priority", version, [rb.Rule(when, then=then) for when, then in rules], default
    )


# -- undeclared ----------------------------------------------------------------------------------


def test_without_a_matrix_nothing_gets_a_priority():
    answer = shipped.run()
    assert answer.verdicts.counts() == {"declined": 11}
    assert answer["result"]["rule_version"] == "undeclared"
    assert answer["result"]["matrix"] == "undeclared"


def test_undeclared_is_seen_in_the_ledger_and_on_the_answer():
    answer = shipped.run()
    items = {item.what: item.why for item in answer.ledger.not_checked}
    what = "the priority of 11 incidents: the matrix is undeclared"
    assert "fixes no combined score" in items[what]
    assert "undeclared" in str(answer)
    assert "undeclared" in answer.to_markdown()


@pytest.mark.parametrize(
    "row", [facts(f, [i], r) for f, i, r in product(FUNCTIONAL, INFORMATION, RECOVERABILITY)]
)
def test_no_combination_slips_through_undeclared(row):
    assert decide(row, shipped.undeclared()).branch == "declined"


# -- declared ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answer():
    return shipped.run(matrix=shipped.exercise())


def test_the_exercise_orders_the_incidents(answer):
    assert {row["incident"].split()[0]: row["verdict"] for row in answer.verdicts} == {
        "EX-101": "immediate",
        "EX-102": "immediate",
        "EX-103": "urgent",
        "EX-104": "soon",
        "EX-105": "urgent",
        "EX-106": "planned",
        "EX-107": "urgent",
        "EX-108": "urgent",
        "EX-109": "planned",
        "EX-110": "declined",
        "EX-111": "declined",
    }


def test_the_declared_matrix_is_named_on_the_answer(answer):
    assert answer["result"]["rule_version"] == "exercise-1"
    assert answer["result"]["matrix"] == "incident-priority exercise-1"
    assert not [item for item in answer.ledger.not_checked if "undeclared" in item.what]


def test_the_worst_stands_first_and_what_is_unknown_before_what_can_wait(answer):
    ranks = shipped.priorities(shipped.exercise())
    assert ranks == ("immediate", "urgent", "soon", "declined", "planned")
    found = [ranks.index(row["verdict"]) for row in answer.verdicts]
    assert found == sorted(found)


@pytest.mark.parametrize("functional", FUNCTIONAL)
def test_integrity_loss_that_cannot_be_undone_never_averages_away(functional):
    for more in ([], ["privacy breach"], ["privacy breach", "proprietary breach"]):
        row = facts(functional, ["integrity loss", *more], "not recoverable")
        assert decide(row, shipped.exercise()).branch == "immediate"


def test_the_exercise_has_a_word_for_each_combination():
    words = {
        decide(facts(f, [i], r), shipped.exercise()).branch
        for f, i, r in product(FUNCTIONAL, INFORMATION, RECOVERABILITY)
    }
    assert words == {"immediate", "urgent", "soon", "planned"}


def test_the_exercise_is_never_milder_for_a_worse_category():
    order = shipped.priorities(shipped.exercise())

    def rank(row):
        return order.index(decide(row, shipped.exercise()).branch)

    for f, i, r in product(range(3), INFORMATION, range(4)):
        milder, worse = (facts(FUNCTIONAL[n], [i], RECOVERABILITY[r]) for n in (f, f + 1))
        assert rank(worse) <= rank(milder)
    for f, i, r in product(range(4), INFORMATION, range(3)):
        milder, worse = (facts(FUNCTIONAL[f], [i], RECOVERABILITY[n]) for n in (r, r + 1))
        assert rank(worse) <= rank(milder)
    for f, i, r in product(FUNCTIONAL, INFORMATION[1:], RECOVERABILITY):
        assert rank(facts(f, [i], r)) <= rank(facts(f, ["none"], r))


def test_another_matrix_gives_another_order_and_the_difference_is_listed(answer):
    ours = matrix(({"functional": {"eq": "high"}}, "now"), default="later")
    flips = answer.compare(answer.rejudge(ours)).to_frame()
    moved = dict(zip(flips["subject"], flips["after"], strict=True))
    assert moved["EX-102 shop unreachable"] == "now"
    assert moved["EX-101 payroll database altered"] == "later"


def test_a_matrix_is_read_from_its_file(tmp_path):
    path = tmp_path / "ours.yaml"
    matrix(({"functional": {"eq": "high"}}, "now")).save(path)
    answer = shipped.run(matrix=path)
    assert answer["result"]["rule_version"] == "ours-1"
    assert answer.verdicts.counts()["now"] == 1
    assert shipped.run(matrix=str(path)).verdicts == answer.verdicts


# -- what a matrix leaves open -------------------------------------------------------------------


def test_a_matrix_that_averages_integrity_away_is_spoken_of():
    ours = matrix(
        ({"functional": {"eq": "high"}}, "now"), ({"functional": {"eq": "medium"}}, "today")
    )
    answer = shipped.run(matrix=ours)
    items = {item.what: item.why for item in answer.ledger.not_checked}
    why = items["whether integrity loss that is not recoverable is averaged away"]
    assert "does not always give it 'now'" in why
    assert "none gives 'later'" in why
    assert "high gives" not in why


def test_a_matrix_with_holes_says_how_many():
    ours = matrix(
        ({"information": {"contains": "integrity loss"}}, "now"),
        ({"functional": {"in": ["low", "medium", "high"]}}, "today"),
        default="declined",
    )
    (item,) = shipped.weaknesses(ours)
    assert item.what.startswith("12 combinations of categories")
    assert "none, none, regular" in item.why


def test_a_whole_matrix_has_nothing_to_say():
    assert list(shipped.weaknesses(shipped.exercise())) == []
    assert (
        list(shipped.weaknesses(matrix(({"functional": {"eq": "high"}}, "now"), default="now")))
        == []
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"functional": "high"}, "not dict"),
        (7, "not int"),
        (
            rb.RuleSet("m", "v", [rb.Rule({"functional": {"eq": "x"}}, "declined")], "declined"),
            "no priority in it",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(bad, words):
    with pytest.raises(DefinitionError, match=words) as told:
        shipped.toolbox(matrix=bad)
    assert told.value.where == "matrix"


def test_a_matrix_file_with_a_misspelt_key_is_refused_with_its_line(tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text(
        "name: m\nversion: v1\nrules:\n  - wenn: {functional: {eq: high}}\n    then: now\n",
        encoding="utf-8",
    )
    with pytest.raises(RuleError, match="line 4"):
        shipped.run(matrix=path)


@pytest.mark.parametrize(
    ("rules", "default", "wanted"),
    [
        ([("a", 1), ("b", 2)], "c", ("a", "b", "declined", "c")),
        ([("a", 1), ("b", 2)], "a", ("b", "declined", "a")),
        ([("a", 1), ("declined", 2)], "declined", ("declined", "a")),
        ([("a", 1), ("b", 2)], "declined", ("a", "declined", "b")),
        ([("a", 1)], "a", ("declined", "a")),
    ],
)
def test_priorities_stand_in_the_order_the_rules_name_them(rules, default, wanted):
    ours = matrix(*(({"n": {"eq": n}}, word) for word, n in rules), default=default)
    assert shipped.priorities(ours) == wanted


# -- the rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "read", "problem"),
    [
        ({"functional": "HIGH "}, "high", ""),
        ({"functional": None}, None, ""),
        ({"functional": ""}, None, "functional is ''"),
        ({"functional": "hihg"}, None, "functional is 'hihg'"),
        ({"functional": "low; high"}, None, "cannot hold together"),
        ({"functional": 3}, None, "functional is '3'"),
        ({"recoverability": "Not Recoverable"}, "not recoverable", ""),
        (
            {"information": "privacy breach; Integrity Loss"},
            "privacy breach; integrity loss",
            "",
        ),
        ({"information": ["none"]}, "none", ""),
        (
            {"information": ["privacy breach", "Integrity loss "]},
            "privacy breach; integrity loss",
            "",
        ),
        ({"information": "none; integrity loss"}, None, "cannot hold together"),
        ({"information": "privacy breach; secrets"}, None, "information is 'secrets'"),
        ({"information": []}, None, ""),
    ],
)
def test_words_are_those_of_the_guide(given, read, problem):
    (row,) = shipped.incident_rows([{"incident": "a"} | given])
    assert row[next(iter(given))] == read
    assert problem in row["problem"]
    assert bool(problem) == bool(row["problem"])


def test_a_word_that_is_none_is_declined_and_named(answer):
    rows = {row["incident"].split()[0]: row for row in answer.verdicts}
    assert rows["EX-111"]["verdict"] == "declined"
    items = {item.what: item.why for item in answer.ledger.not_checked}
    assert "functional is 'hihg'" in items["1 incident with a word that the guide does not have"]
    assert "functional is null" in answer.why("EX-111 portal down").sentence


def test_a_problem_declines_even_where_another_category_would_decide():
    """A word that is unknown may be the worse one, so the milder known ones do not decide alone."""
    row = {"incident": "a", "functional": "low", "information": "integrity los"}
    row |= {"recoverability": "regular"}
    answer = shipped.run([row], matrix=shipped.exercise())
    assert answer.verdicts.counts() == {"declined": 1}


def test_a_file_is_read(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text(
        "incident,functional,information,recoverability\n"
        "INC-1,high,none,regular\n"
        'INC-2,low,"privacy breach; integrity loss",not recoverable\n',
        encoding="utf-8",
    )
    answer = shipped.run(file=path, matrix=shipped.exercise())
    assert answer.verdicts.counts() == {"immediate": 2}
    assert answer.verdicts[1]["information"] == "privacy breach; integrity loss"
    assert answer.ledger.checked[0].what == "file open.csv, 2 incidents"


def test_no_incident_is_no_all_clear():
    with pytest.raises(RunbookError, match="nothing found for: incidents in the rows given"):
        shipped.run([])


def test_the_ledger_says_what_the_categories_leave_out(answer):
    cannot = [item.what for item in answer.ledger.cannot_cover]
    assert "whether an incident was put into the right categories" in cannot
    assert "how critical the asset is, who attacks and how far they are" in cannot
