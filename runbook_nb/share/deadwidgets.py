"""Widgets of a notebook that is handed on: what stands where no kernel will ever answer.

Sharing layer. Trusted and without a kernel, JupyterLab shows an error in the place of a widget and
hides the static view beside it. So a widget falls back to what stands beside it, or to a static
output right before or behind it; where there is nothing, a sentence says that there was one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from runbook_nb.share.document import WIDGET
from runbook_nb.share.shared import Findings

#: Where notebooks keep the state of widgets.
STATE: Final = "application/vnd.jupyter.widget-state+json"

NOTHING: Final = "A widget stood here. It needs a running kernel, and had no static view."

#: What a widget of ours says of itself where its static view is an output of its own.
_LIVE: Final = ", live while its kernel runs"
_RICH: Final = ("text/html", "image/png", "image/svg+xml", "image/jpeg", "text/markdown")
_MODEL: Final = "IPY_MODEL_"


def kept_models(metadata: Mapping[str, Any], shown: Iterable[str]) -> dict[str, Any]:
    """Give the models of the widgets that can be shown again without a kernel.

    Parameters
    ----------
    metadata : mapping
        That of the notebook.
    shown : iterable of str
        The models its outputs show.

    Returns
    -------
    dict
        By name. Of a widget whose models are not all there, none is given; models that no output
        needs are left out.
    """
    states = _states(metadata)
    kept: dict[str, Any] = {}
    for model in shown:
        needed = _needed(model, states)
        if needed is not None:
            kept.update((name, states[name]) for name in needed)
    return {name: kept[name] for name in sorted(kept)}


def _states(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    widgets = metadata.get("widgets")
    whole = widgets.get(STATE) if isinstance(widgets, Mapping) else None
    if not isinstance(whole, Mapping) or whole.get("version_major") != 2:
        return {}
    states = whole.get("state")
    return states if isinstance(states, Mapping) else {}


def _needed(model: str, states: Mapping[str, Any]) -> list[str] | None:
    """Give the names of a model and of all it refers to; None where one is missing."""
    left, met = [model], dict[str, None]()
    while left:
        name = left.pop()
        if name in met:
            continue
        held = states.get(name)
        if not isinstance(held, Mapping) or not isinstance(held.get("state"), Mapping):
            return None
        if not all(isinstance(held.get(part), str) for part in ("model_name", "model_module")):
            return None
        met[name] = None
        left += _references(held["state"])
    return list(met)


def _references(value: Any) -> list[str]:
    found: list[str] = []
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            if part.startswith(_MODEL):
                found.append(part.removeprefix(_MODEL))
        elif isinstance(part, Mapping):
            left.extend(part.values())
        elif isinstance(part, list | tuple):
            left.extend(part)
    return found


def models_shown(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """Give the models that outputs show, in their order."""
    return [
        model
        for cell in cells
        for output in cell.get("outputs", ())
        if (model := _model_of(output)) is not None
    ]


def _model_of(output: Mapping[str, Any]) -> str | None:
    shown = output.get("data", {}).get(WIDGET)
    model = shown.get("model_id") if isinstance(shown, Mapping) else None
    return model if isinstance(model, str) else None


def fallen_back(
    outputs: Sequence[Mapping[str, Any]],
    alive: Mapping[str, Any],
    findings: Findings,
    place: str,
) -> list[dict[str, Any]]:
    """Give the outputs of a cell with static views where widgets stood.

    Parameters
    ----------
    outputs : sequence of mapping
    alive : mapping
        The models that are kept.
    findings : Findings
    place : str
        The cell, in words.
    """
    made: list[dict[str, Any]] = []
    for number, output in enumerate(outputs):
        data = output.get("data", {})
        if WIDGET not in data or _model_of(output) in alive:
            made.append(dict(output))
            continue
        where = f"output {number + 1} of {place}"
        rest = {kind: shown for kind, shown in data.items() if kind != WIDGET}
        before = outputs[number - 1] if number else None
        after = outputs[number + 1] if number + 1 < len(outputs) else None
        if _says_no_more(rest, before) or (not rest and _is_rich(after)):
            findings.add("removed", "widget, of which a static view stands beside it", where)
            continue
        said = "widget, for its static view" if rest else "widget that had no static view"
        findings.add("replaced", said, where)
        made.append({**output, "data": rest or {"text/plain": NOTHING}})
    return made


def _is_rich(output: Mapping[str, Any] | None) -> bool:
    data = output.get("data", {}) if output is not None else {}
    return WIDGET not in data and any(kind in data for kind in _RICH)


def _says_no_more(rest: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Say whether the output right before shows all that is left of a widget, and more."""
    if not _is_rich(before) or set(rest) - {"text/plain"}:
        return False
    assert before is not None  # noqa: S101 - what is not there is not rich
    text = str(rest.get("text/plain", ""))
    shown = str(before["data"].get("text/plain", ""))
    return not text or _LIVE in text or shown.startswith(text.split("\n", 1)[0])
