"""The report says what, where and how often, and counts what it lists."""

from runbook_nb.share.shared import ACTIONS, Findings, SharedNotebook, ShareFinding


def report(*findings):
    return SharedNotebook(name="a.ipynb", findings=findings, cells=2, outputs=1, answers=1)


def test_one_thing_met_twice_in_one_place_is_one_line():
    findings = Findings()
    findings.add("kept", "x", "here")
    findings.add("removed", "y", "here", 2)
    findings.add("removed", "y", "here")
    findings.add("removed", "z", "there", 0)
    assert [one.to_dict() for one in findings.all()] == [
        {"action": "removed", "what": "y", "place": "here", "times": 3},
        {"action": "kept", "what": "x", "place": "here", "times": 1},
    ]


def test_words_are_hidden_before_they_are_told():
    findings = Findings()
    findings.add("kept", "name hunter-2", "in hunter-2")
    (one,) = findings.said(lambda text: text.replace("hunter-2", "[REDACTED]")).all()
    assert (one.what, one.place) == ("name [REDACTED]", "in [REDACTED]")


def test_only_what_had_to_go_makes_a_notebook_unclean():
    for action in ACTIONS:
        made = report(ShareFinding(action, "x", "y", 3))
        assert made.clean == (action in ("kept", "not checked"))
        assert made.count(action) == 3
        assert made.to_dict()["counts"][action] == 3


def test_it_says_what_it_does_not_claim():
    assert "Nothing in it had to be removed or replaced." in str(report())
    assert "Not looked for: a secret that stands under no name of one" in str(report())
