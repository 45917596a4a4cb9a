"""Runs under random playbooks and policies: calls, batches, failures, people, restarts."""

from contextlib import suppress
from datetime import date

from hypothesis import strategies as st

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.skills import Skill
from runbook_nb.settings import settings

TOOLS = ("scan", "query", "pay", "Bash", "skills")
PROBES = (
    {"name": "auth", "match": "index=auth"},
    {"name": "day", "match": "2026-01-02"},
    {"name": "hidden", "match": "s3cret"},
    {"name": "set", "match": "{7}"},
)
CHECKS = (
    {"name": "small", "tool": "pay", "path": "sum", "op": "lt", "value": 50},
    {"name": "token", "path": "token", "op": "contains", "value": "s3cret"},
    {"name": "done", "source": "result", "path": "status", "op": "eq", "value": "done"},
)
ARGUMENTS = (
    None,
    {"q": "index=auth"},
    {"sum": 10, "at": "2026-01-02"},
    {"sum": 99.5, "nested": {"a": [1, None, True]}},
    {"command": "git status"},
    {"day": date(2026, 1, 2), "token": "s3cret-value", "set": {7}},
    "index=auth as a text",
)
SKILLS = {
    "git": Skill("git", "Git.", allowed_tools=["Bash(git:*)", "scan"]),
    "siem": Skill("siem", "Logs.", required_probes=[], allowed_tools=None, min_tool_calls=2),
    "none": Skill("none", "Nothing.", allowed_tools=[]),
}


@st.composite
def steps(draw, place):
    step = {
        "id": f"s{place}",
        "description": "Do it.",
        "expected_tools": draw(st.lists(st.sampled_from(TOOLS[:4]), max_size=2)),
        "required": draw(st.booleans()),
        "hints": draw(st.sampled_from(([], ["think first"]))),
    }
    if draw(st.booleans()):
        step["required_probes"] = draw(st.lists(st.sampled_from(PROBES), unique_by=str, max_size=2))
    step["min_tool_calls"] = draw(st.sampled_from((None, None, 1, 2)))
    step["max_tool_calls"] = draw(st.sampled_from((None, None, 2, 3)))
    step["timeout_seconds"] = draw(st.sampled_from((None, None, 5.0)))
    step["uses"] = draw(st.sampled_from(([], [], ["git"], ["siem"], ["none"])))
    if draw(st.integers(0, 4)) == 0:
        step["kind"] = draw(st.sampled_from(("manual", "approval")))
    if draw(st.integers(0, 4)) == 0:
        step["checks"] = [draw(st.sampled_from(CHECKS))]
    return step


@st.composite
def playbooks(draw):
    count = draw(st.integers(0, 4))
    return Playbook(
        id="ir",
        name="Incident response",
        steps=[draw(steps(n)) for n in range(count)],
        allow_extra_tools=draw(st.booleans()),
        strict_sequence=draw(st.booleans()),
        max_iterations=draw(st.sampled_from((None, None, 6))),
    )


#: Rules that make a difference, each with what it can be.
RULES = {
    "credit": ("pointer", "admitted"),
    "lookahead": (True, False),
    "seen": ("attempted", "successful"),
    "cap_counts": ("all", "expected", "successful"),
    "on_cap": ("close", "fail", "hold"),
    "on_stuck": ("none", "fail", "close", "ask"),
    "floor": ("record", "hold"),
    "evidence": ("record", "hold"),
    "optional": ("blocking", "passable"),
    "after_complete": ("reject", "as_others", "record", "allow"),
    "on_timeout": ("record", "fail", "block"),
    "probe_text": ("v1", "v2"),
    "skills_mean": ("bound", "advisory"),
    "empty_skill_list": ("unbound", "deny"),
    "evidence_from": ("attempted", "successful"),
    "record_started": ("result", "admission"),
}


@st.composite
def policies(draw):
    changes = {
        name: draw(st.sampled_from(RULES[name]))
        for name in draw(st.lists(st.sampled_from(sorted(RULES)), unique=True, max_size=4))
    }
    profile = draw(st.sampled_from(("safe", "compat")))
    return EnforcementPolicy(profile, **changes)


OUTCOMES = ("ok", "ok", "ok", "error", "cached", "cancelled", "retried")
ACTS = (
    *("call", "call", "call", "admit", "settle", "batch", "validate", "record"),
    *(
        "complete",
        "skip",
        "fail",
        "person",
        "approve",
        "decline",
        "reset",
        "finish",
        "wait",
        "restart",
    ),
)


@st.composite
def acts(draw):
    word = draw(st.sampled_from(ACTS))
    tool = draw(st.sampled_from(TOOLS))
    arguments = draw(st.sampled_from(ARGUMENTS))
    return word, tool, arguments, draw(st.sampled_from(OUTCOMES)), draw(st.integers(0, 3))


class Run:
    """A run that is driven act by act, and kept in a journal when there is one."""

    def __init__(self, book, policy, clock, journal, redact=None, **more):
        self.clock, self.journal, self.redact = clock, journal, redact
        self.running = []
        with settings(clock=clock):
            self.enforcer = PlaybookEnforcer.from_playbook(
                book, skills=SKILLS, policy=policy, journal=journal(), redact=redact, **more
            )

    def act(self, word, tool, arguments, outcome, number):
        with settings(clock=self.clock), suppress(PlaybookError):
            getattr(self, f"_{word}")(tool, arguments, outcome, number)

    def _call(self, tool, arguments, outcome, number):
        admission = self.enforcer.admit(tool, arguments)
        if admission.allowed:
            self.running.append(admission.call_id)
            self._settle(tool, arguments, outcome, number)

    def _admit(self, tool, arguments, outcome, number):
        admission = self.enforcer.admit(tool, arguments, parent="p" if number else None)
        if admission.allowed:
            self.running.append(admission.call_id)

    def _settle(self, tool, arguments, outcome, number):
        if self.running:
            name = self.running.pop()
            result = {"status": "done", "at": date(2026, 1, 2)} if number else {"status": "done"}
            error = ValueError(f"no {name}") if outcome == "error" else None
            changed = {"q": "index=auth"} if number == 2 else None
            self.enforcer.settle(name, outcome, result, error, arguments=changed)

    def _batch(self, tool, arguments, outcome, number):
        calls = [(tool, arguments), "scan", ("query", {"q": "index=auth"})][: 1 + number]
        for one in self.enforcer.admit_batch(calls):
            if one.allowed and self.enforcer.confirm(one).allowed:
                self.running.append(one.call_id)
                if number != 3:
                    self._settle(tool, arguments, outcome, number)

    def _validate(self, tool, *_):
        self.enforcer.validate_tool_call(tool)

    def _record(self, tool, arguments, *_):
        self.enforcer.record_tool_call(tool, arguments=arguments)

    def _complete(self, tool, arguments, outcome, number):
        self.enforcer.complete_current_step(f"done {number}" if number else None)

    def _skip(self, tool, arguments, outcome, number):
        self.enforcer.skip_current_step("no need" if number else None)

    def _fail(self, *_):
        self.enforcer.fail_current_step("it broke")

    def _person(self, tool, arguments, outcome, number):
        self.enforcer.complete(f"s{number}", by="ana", note="seen" if number else "")

    def _approve(self, tool, arguments, outcome, number):
        self.enforcer.approve(f"s{number}", by="ana", note="fine" if number else "")

    def _decline(self, tool, arguments, outcome, number):
        self.enforcer.decline(f"s{number}", by="eve", note="no" if number else "")

    def _reset(self, tool, arguments, outcome, number):
        if not number:
            self.enforcer.reset()

    def _finish(self, *_):
        self.enforcer.finish()

    def _wait(self, tool, arguments, outcome, number):
        self.clock.seconds += 3 * number
        self.enforcer.check_time()

    def _restart(self, *_):
        self.enforcer = PlaybookEnforcer.resume(self.journal(), redact=self.redact)
