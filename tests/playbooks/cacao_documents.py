"""Documents of our own in which every kind of step stands, and every way to lose something."""

import base64
import json
from typing import Any
from uuid import UUID

#: Each kind of object counts its own ids, so that no two share one.
_KINDS = [
    *("playbook", "identity", "start", "end", "action", "playbook-action", "parallel"),
    *("if-condition", "while-condition", "switch-condition", "individual", "group", "http-api"),
    *("linux", "extension-definition", "marking-statement"),
]

AUTHOR = "identity--11111111-1111-4111-8111-111111111111"


def an_id(kind: str, n: int = 0) -> str:
    return f"{kind}--{UUID(int=((_KINDS.index(kind) + 1) << 32) + n, version=4)}"


def start(to: str) -> dict[str, Any]:
    return {"type": "start", "on_completion": to}


END = {"type": "end"}
SOC = an_id("group")


def action(name: str, to: str, *commands: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = list(commands) or [{"type": "manual", "command": f"Do this: {name}"}]
    return {
        "type": "action",
        "name": name,
        "on_completion": to,
        "commands": told,
        "agent": SOC,
        **more,
    }


def document(workflow: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "playbook",
        "spec_version": "cacao-2.0",
        "id": an_id("playbook"),
        "name": "Phishing mail",
        "created_by": AUTHOR,
        "created": "2026-11-29T00:00:00.000Z",
        "modified": "2026-11-30T00:00:00.000Z",
        "workflow_start": an_id("start"),
        "workflow": workflow,
        "agent_definitions": {SOC: {"type": "group", "name": "SOC"}},
        **more,
    }


def line(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A document of steps one after the other; each is given without what follows it."""
    keys = [an_id(step["type"], n) for n, step in enumerate(steps)]
    after = [*keys[1:], an_id("end")]
    workflow = {an_id("start"): start([*keys, an_id("end")][0])}
    for key, step, then in zip(keys, steps, after, strict=True):
        workflow[key] = {**step, "on_completion": then}
    return document({**workflow, an_id("end"): END}, **more)


def notebook() -> str:
    held = {"cells": [{"cell_type": "code", "source": "1/0"}], "metadata": {}, "nbformat": 4}
    return base64.b64encode(json.dumps(held).encode()).decode()


def every_kind() -> dict[str, Any]:
    """Every kind of step, reached; of commands those that a step can be done by in many ways."""
    a = [an_id("action", n) for n in range(12)]
    e = [an_id("end", n) for n in range(12)]
    choice, switch, loop, both, other = (
        an_id(kind)
        for kind in (
            "if-condition",
            "switch-condition",
            "while-condition",
            "parallel",
            "playbook-action",
        )
    )
    extension = an_id("extension-definition")
    api = {
        "type": "http-api",
        "command": "GET /mail/1 HTTP/1.1",
        "headers": {"Accept": ["application/json"]},
    }
    workflow: dict[str, Any] = {
        an_id("start"): start(a[0]),
        a[0]: action("Fetch the mail", choice, api, timeout=1500, agent=an_id("http-api")),
        choice: {
            "type": "if-condition",
            "name": "Is it known?",
            "condition": "__known__:value = 'true'",
            "on_true": a[1],
            "on_false": a[2],
            "on_completion": switch,
        },
        a[1]: action("Close as known", e[1]),
        a[2]: action("Look into it", e[2], {"type": "jupyter", "command_b64": notebook()}),
        e[1]: END,
        e[2]: END,
        switch: {
            "type": "switch-condition",
            "switch": "__severity__:value",
            "cases": {"high": a[3], "default": a[4]},
            "on_completion": loop,
        },
        a[3]: action("Call the duty officer", e[3], delay=5000),
        a[4]: action("Write a ticket", e[4], owner=AUTHOR),
        e[3]: END,
        e[4]: END,
        loop: {
            "type": "while-condition",
            "name": "While mails arrive",
            "condition": "__more__:value = 'true'",
            "on_true": a[5],
            "on_completion": both,
        },
        a[5]: action("Pull a mail", e[5], {"type": "bash", "command": "pull --one"}),
        e[5]: END,
        both: {
            "type": "parallel",
            "name": "Contain",
            "next_steps": [a[6], a[7]],
            "on_completion": other,
        },
        a[6]: action("Block the sender", e[6], targets=[an_id("linux")]),
        a[7]: action(
            "Reset the password",
            e[7],
            step_extensions={extension: {"colour": "red"}},
            step_variables={"__user__": {"type": "string", "value": "x"}},
        ),
        e[6]: END,
        e[7]: END,
        other: {
            "type": "playbook-action",
            "name": "Recover",
            "playbook_id": an_id("playbook", 1),
            "on_success": a[8],
            "on_failure": a[9],
        },
        a[8]: action("Tell everybody", e[8]),
        e[8]: END,
        a[9]: action("Ask for help", e[9]),
        e[9]: END,
        a[10]: action("Write down the exception", e[10]),
        e[10]: END,
        a[11]: action("Nobody comes here", e[11]),
        e[11]: END,
    }
    return document(
        workflow,
        description="What to do about a mail.",
        labels=["mail", "phishing"],
        priority=20,
        workflow_exception=a[10],
        playbook_variables={
            name: {"type": "string", "value": "x", "external": True}
            for name in ("__known__", "__severity__", "__more__")
        },
        markings=[an_id("marking-statement")],
        agent_definitions={
            SOC: {"type": "group", "name": "SOC"},
            an_id("http-api"): {
                "type": "http-api",
                "name": "mail",
                "address": {"url": ["https://mail.example.org/api"]},
            },
        },
        target_definitions={
            an_id("linux"): {
                "type": "linux",
                "name": "mx",
                "address": {"ipv4": ["192.0.2.1"]},
            }
        },
        extension_definitions={
            extension: {
                "type": "extension-definition",
                "name": "colours",
                "created_by": AUTHOR,
                "schema": "https://example.org/colours.json",
                "version": "1.0.0",
            }
        },
        data_marking_definitions={
            an_id("marking-statement"): {
                "type": "marking-statement",
                "id": an_id("marking-statement"),
                "created_by": AUTHOR,
                "created": "2026-11-29T00:00:00.000Z",
                "statement": "For training.",
            }
        },
    )
