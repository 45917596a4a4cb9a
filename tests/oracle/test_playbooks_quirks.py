"""Each quirk by its smallest occasion: seen under ``compat``, and not under ``safe``."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from plan_laws import broken_laws, safe_laws
from playbook_drawn import sequences
from playbook_safe import BETTER, reasons_to_refuse, refusal_of
from playbook_sequence import Replay
from playbook_values import cases


def step(name, *tools, **more):
    return {"id": name, "description": f"About {name}.", "expected_tools": [*tools], **more}


def call(tool, args=None, outcome="ok"):
    return {"op": "call", "tool": tool, "args": args, "outcome": outcome}


def batch(*tools):
    return {"op": "batch", "calls": [{"tool": tool, "args": {}} for tool in tools]}


def case(quirk, steps, events, skills=None, *, head=None, **flags):
    book = {"id": "x", "name": "y", "steps": steps, **(head or {})}
    given = {"playbook": book, "events": events, "skills": skills, **flags}
    return pytest.param({"quirk": quirk, "input": given}, id=quirk)


PROBE = [{"name": "p", "match": "auth"}]
LENIENT = {"allow_extra_tools": True}

OCCASIONS = [
    case("Q01", [step("a", "t", "u")], [call("t")] * 3, head={"max_iterations": 2}),
    case("Q03", [step("a", "t"), step("b", "u")], [call("u")], head={"strict_sequence": False}),
    case("Q04", [step("a"), step("b", "u")], [call("u")]),
    case("Q05", [step("a", "t", required=False), step("b", "u")], [call("u")]),
    case("Q06", [step("a", "t"), step("b", "u")], [call("u"), call("t")], head=LENIENT),
    case("Q07", [step("a", "t", max_tool_calls=1)], [call("z")], head=LENIENT),
    case("Q08", [step("a", "t", max_tool_calls=1)], [call("z", None, "error")] * 3, head=LENIENT),
    case("Q09", [step("a", "t")], [call("t"), call("t")], block_violations=False),
    case("Q10", [step("a", "t", min_tool_calls=2)], [call("t")]),
    case("Q12", [step("a", "t", "u")], [call("t", None, "error"), call("u")]),
    case("Q13", [step("a", "t", max_tool_calls=1)], [call("t", None, "error"), call("t")]),
    case("Q14", [step("a", "t", required_probes=PROBE)], [call("t", "auth", "error"), call("t")]),
    case("Q15", [step("a", "t"), step("b", "u")], [batch("t", "u")]),
    case("Q16", [step("a", "t"), step("b", "u", max_tool_calls=1)], [batch("t", "t")]),
    case("Q17", [step("a", "t", uses=["k"])], [call("t")], {"k": {"allowed_tools": []}}),
    case("Q19", [step("a", "t", uses=["k"])], [call("u")], {"k": {"allowed_tools": ["u"]}}),
    case("Q20", [step("a", "t", uses=["k"])], [call("t")], {"k": {"min_tool_calls": 2}}),
    case("Q21", [step("a", "t")], [call("skills"), call("t"), call("task_complete")]),
    case("Q22", [step("a", "t"), step("b", "u")], [call("t")]),
    case("Q23", [step("a", "t", required_probes=[{"name": "p", "match": "k=v"}])],
         [call("t", {"k": "v"})]),
    case("Q25", [step("a", "t", "u")], [call("t")]),
    case("Q32", [step("a", uses=["k"], max_tool_calls=3)], [call("Bash", {"command": "git log"})],
         {"k": {"allowed_tools": ["Bash(git:*)"]}}),
]  # fmt: skip


@pytest.mark.parametrize("case", OCCASIONS)
def test_a_quirk_is_seen_under_compat_and_not_under_safe(case):
    better = BETTER[case["quirk"]]
    if case["quirk"] != "Q19":  # that nothing can bring a run on is told under any policy
        assert better(case, old := Replay(case, "compat")) or safe_laws(old.enforcer)
    assert better(case, now := Replay(case, "safe")) == []
    assert broken_laws(now.enforcer) == []


@pytest.mark.parametrize(
    "case",
    [
        case("Q11", [step("a", "t", max_tool_calls=0)], []),
        case("Q11", [step("a", "t", min_tool_calls=3, max_tool_calls=2)], []),
        case("Q18", [step("a", "t", uses=["k"])], []),
        case("Q18", [step("a", "t", uses=["k", "l"])], [], {"k": {}}),
        case(
            "Q20", [step("a", "t", uses=["k"], min_tool_calls=3)], [], {"k": {"max_tool_calls": 2}}
        ),
        case("Q23", [step("a", "t", required_probes=[{"name": "p", "match": " "}])], []),
        case("Q26", [step("a", "t"), step("a", "u")], []),
    ],
)
def test_what_no_run_could_keep_is_taken_under_compat_and_refused_under_safe(case):
    Replay(case, "compat")
    assert (refusal := refusal_of(case)) is not None
    assert (reasons := reasons_to_refuse(case))
    assert all(reason in str(refusal) for reason in reasons)


def kept():
    """Give the recorded quirks that come with this project; those of another folder may be weak."""
    found = [one for one in cases(kept=True) if one["kind"] == "sequence"]
    return [pytest.param(one, id=one["id"]) for one in found if one["quirk"] in BETTER]


@pytest.mark.parametrize("case", kept())
def test_what_is_asserted_of_a_recorded_quirk_does_not_hold_of_the_recording(case):
    if refusal_of(case) is not None or "comment" in case["title"]:
        return  # refused at once; or left as it is by plain probes, which checks do better
    old = Replay(case, "compat")
    assert BETTER[case["quirk"]](case, old) or safe_laws(old.enforcer)


@given(sequences)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_assertion_of_a_quirk_speaks_against_any_run_under_safe(sequence):
    case = {"quirk": None, "input": sequence}
    if refusal_of(case) is not None:
        assert reasons_to_refuse(case)
        return
    for quirk, better in BETTER.items():
        assert not better({**case, "quirk": quirk}, Replay(case, "safe")), quirk
