"""What a run under a playbook amounts to as an answer: a row per step, and what was not covered.

It is written into the state of the run, under the names a runbook's answer is read from, so that
an answer made of it is filed, compared and verified as any other is. Nothing is claimed here that
`told` does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from runbook_nb._text import counted, listed
from runbook_nb.playbooks.told import Seen, Told
from runbook_nb.record.steps import DECLINED, STEP_VERDICTS, StepFacts, refusal_reason, verdict_of

#: Under which names an answer is read from the state of a run.
ANSWER_KEYS: Final = ("verdicts", "report", "coverage")

#: Why a call is refused that may be made later.
_BEFORE_ITS_TURN: Final = frozenset(
    {"unexpected_tool", "tool_outside_skill", "approval_missing", "prerequisite_missing"}
)

#: What a step that a person is to come to waits for.
_WAITS: Final = {
    "approval": "it waits for an approval",
    "manual": "it waits for a person to close it",
}


def account_of(told: Told) -> dict[str, Any]:
    """Give the rows, the report and the coverage of a run.

    Parameters
    ----------
    told : Told
        The run.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> account = account_of(Told.of_playbook(Playbook(id="ir", name="IR", steps=[step])))
    >>> account["verdicts"][0]["verdict"], account["coverage"]["not_checked"][0]["what"]
    ('not reached', "step 'look': nobody came to it")
    """
    return {
        "verdicts": [_row(one) for one in told.steps],
        "report": _report(told),
        "coverage": {
            "checked": [_item(*item) for item in _checked(told)],
            "not_checked": [_item(*item) for item in _not_checked(told)],
            "cannot_cover": [
                _item(
                    "whether the answers of the calls are right",
                    "a playbook says which calls were made, in which order and with what evidence",
                )
            ]
            if told.steps
            else [],
        },
    }


def _item(what: str, why: str | None = None) -> dict[str, str]:
    return {"what": what} if why is None else {"what": what, "why": why}


def _row(one: Seen) -> dict[str, Any]:
    facts = one.facts
    met, wanted = one.probes
    counts = one.to_dict()
    return {
        "verdict": verdict_of(facts, one.short),
        "step": one.node.name,
        "required": one.required,
        "calls": facts.calls,
        "failed": counts["failed"],
        "refused": facts.refused.total(),
        "probes": f"{met}/{wanted}" if wanted else None,
    }


def _report(told: Told) -> dict[str, Any]:
    here = told.current
    due = None if here is None else _due(told, here)
    return {
        "playbook": f"{told.name} {told.version}".strip(),
        "policy": told.policy,
        "outcome": told.verdict,
        "deviations": told.deviations,
        "calls": told.calls,
        "calls_refused": told.refused,
        **({"declined": declined} if (declined := _declined(told)) else {}),
        **({"waits": f"step '{here.node.name}': {due}"} if here and due else {}),
    }


def _declined(told: Told) -> str:
    """Say which steps a person declined to approve, and who."""
    found = [one for one in told.steps if one.facts.declined]
    return listed([f"step '{one.node.name}' by {one.facts.declined.get('who')}" for one in found])


def _checked(told: Told) -> Iterator[tuple[str, str | None]]:
    for one in told.steps:
        if one.facts.status == "completed" and not one.short:
            met, wanted = one.probes
            probes = f", {met} of {counted(wanted, 'probe')} matched" if wanted else ""
            yield f"step '{one.node.name}'", f"{_closed(one)}; {_calls(one)}{probes}"
    for one in told.steps:
        for tool, times, later in _refused_early(told, one):
            yield (
                f"'{tool}', refused early in step '{one.node.name}' ({counted(times, 'call')})",
                f"it was called with success after that, in step '{later.node.name}'",
            )


def _closed(one: Seen) -> str:
    by, who = one.facts.ended.get("by"), one.facts.ended.get("who")
    if who:
        return f"closed by {who}"
    return {"calls": "closed by its calls", "cap": "closed by its cap"}.get(
        str(by), f"closed by the {by}"
    )


def _calls(one: Seen) -> str:
    counts = one.to_dict()
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    return f"{counts['ok']} of {counted(one.facts.calls, 'call')} succeeded{failed}"


def _not_checked(told: Told) -> Iterator[tuple[str, str | None]]:
    if told.set_back:
        yield (
            f"what was done before the plan was set back ({counted(told.set_back, 'time')})",
            "a plan that is set back begins anew, and nothing before counts",
        )
    for one in told.steps:
        yield from _open(one, _due(told, one))
    for one in told.steps:
        yield from _evidence(one)
    for one in told.steps:
        early = {tool for tool, _, _ in _refused_early(told, one)}
        yield from _calls_lost(one.facts, f"in step '{one.node.name}'", early)
    yield from _calls_lost(told.after, "after the last step")


def _due(told: Told, one: Seen) -> str | None:
    """Say what a step waits for, where the plan stands at it and a person has not come to it."""
    form, facts = one.node.detail.get("form"), one.facts
    if not form or one.node.key != told.pointer or facts.status != "pending" or facts.approvals:
        return None
    return _WAITS.get(str(form))


def _open(one: Seen, due: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Say of a step that is not done what became of it."""
    facts, name = one.facts, one.node.name
    kind = "step" if one.required else "optional step"
    left = [tool for tool in one.node.detail.get("tools", ()) if not facts.of_tool(tool)[0]]
    lacks = f"no call of {listed(map(str, left))} succeeded" if left else None
    if facts.status == "completed":
        if one.short:
            unmet = [f"'{name}'" for name in one.unmatched]
            lacks = lacks or (f"evidence {listed(unmet)} was not met" if unmet else None)
            noted = lacks or "something was noted against it"
            yield f"{kind} '{name}': it was closed without all that it asks for", noted
        return
    note = facts.ended.get("note")
    declined = f"it was declined by {facts.declined.get('who')}"
    said = {
        "pending": (due or "nobody came to it", lacks),
        "in progress": ("it was begun and is not closed", lacks),
        "stuck": ("it is stuck", facts.why or lacks),
        "failed": ("it failed", note or lacks),
        DECLINED: (declined, note or lacks),
        "skipped": ("it was passed by", note),
    }[facts.status]
    if facts.declined and facts.status == "skipped":
        said = f"{declined}, and passed by", facts.declined.get("note") or note
    yield f"{kind} '{name}': {said[0]}", said[1]


def _evidence(one: Seen) -> Iterator[tuple[str, str | None]]:
    if one.reached and one.facts.status != "skipped":
        for name in one.unmatched:
            yield (
                f"evidence '{name}' of step '{one.node.name}'",
                "no call that counts as evidence has it",
            )


def _refused_early(told: Told, one: Seen) -> Iterator[tuple[str, int, Seen]]:
    """Yield each tool that was refused under a step before its turn, and the step that had it."""
    if not told.in_order:  # what a later step had may have come before
        return
    kinds: dict[str, Counter[str]] = {}
    for (tool, kind, _), times in one.facts.refused.items():
        kinds.setdefault(tool, Counter())[kind] += times
    for tool, counts in kinds.items():
        if not counts.keys() <= _BEFORE_ITS_TURN:
            continue
        # A step itself had it later where it only waited, for an approval or for another.
        first = one.place + ("unexpected_tool" in counts or "tool_outside_skill" in counts)
        for later in told.steps:
            done = later.facts.status == "completed" and later.facts.of_tool(tool)[0]
            if later.place >= first and done and tool in later.node.detail.get("tools", ()):
                yield tool, counts.total(), later
                break


def _calls_lost(
    facts: StepFacts, where: str, early: Collection[str] = ()
) -> Iterator[tuple[str, str | None]]:
    """Say of what calls nothing was learnt: refused ones, failed ones, those left open."""
    refused: dict[str, list[str]] = {}
    times: dict[str, int] = {}
    for (tool, kind, limit), number in facts.refused.items():
        refused.setdefault(tool, []).append(refusal_reason(kind, limit))
        times[tool] = times.get(tool, 0) + number
    for tool, reasons in refused.items():
        if tool in early:
            continue
        many = counted(times[tool], "call")
        yield (
            f"what '{tool}' would have done {where}: {many} refused",
            "; ".join(dict.fromkeys(reasons)),
        )
    for tool in dict.fromkeys(tool for tool, _ in facts.tools):
        ok, failed, still = facts.of_tool(tool)
        if failed and not ok:
            yield (
                f"what '{tool}' would have answered {where}: {counted(failed, 'call')} failed",
                "no call of it succeeded there",
            )
        if still:
            yield (
                f"what came of '{tool}' {where}: {counted(still, 'call')} not settled",
                "nobody has said how it ended",
            )


def joined_account(account: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Lay what the driver of a run gave over the account of it.

    Parameters
    ----------
    account : mapping
        What `account_of` gave.
    given : object
        A mapping with ``report`` and ``coverage`` adds to those, and may have rows of its own
        under ``verdicts``; what was counted stays as it is, and a row about a step that says
        otherwise than the record is told among what was not checked. Anything else that is not
        None stands in the report as ``answer``.

    Examples
    --------
    >>> joined_account({"report": {"calls": 2}}, "all quiet")["report"]
    {'calls': 2, 'answer': 'all quiet'}
    """
    made = dict(account)
    if given is None:
        return made
    if not isinstance(given, Mapping) or not set(given) <= set(ANSWER_KEYS):
        return {**made, "report": {**made.get("report", {}), "answer": given}}
    covered = dict(made.get("coverage", {}))
    if "verdicts" in given:
        covered["not_checked"] = [
            *(_item(*item) for item in _contradicted(given["verdicts"], made.get("verdicts", ()))),
            *covered.get("not_checked", ()),
        ]
        made["verdicts"] = given["verdicts"]
        made["coverage"] = covered
    if isinstance(given.get("report"), Mapping):
        # What was counted stands: whoever drove a run does not say how it was judged.
        counts = made.get("report", {})
        more_said = {name: said for name, said in given["report"].items() if name not in counts}
        made["report"] = {**counts, **more_said}
    more = given.get("coverage")
    if isinstance(more, Mapping):
        for name in ("checked", "not_checked", "cannot_cover"):
            if isinstance(more.get(name), list | tuple):
                covered[name] = [*more[name], *covered.get(name, ())]
        made["coverage"] = covered
    return made


def _contradicted(rows: Any, counted_rows: Any) -> Iterator[tuple[str, str | None]]:
    """Yield each row of a driver that says of a step what the record does not."""
    known = {row["step"]: row["verdict"] for row in counted_rows}
    for row in rows if isinstance(rows, list | tuple) else ():
        if not isinstance(row, Mapping):
            continue
        name, word = row.get("step"), row.get("verdict")
        if not isinstance(name, str) or not isinstance(word, str):
            continue
        recorded = known.get(name)
        # A word of the driver's own is no claim about the record.
        if recorded not in (None, word) and word in STEP_VERDICTS:
            yield (
                f"the rows do not match the record: step '{name}' is told as '{word}'",
                f"the record has it as '{recorded}'; the rows are the driver's own",
            )
