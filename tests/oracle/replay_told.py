"""A chart as others are told of it, compared: descriptions, tool, web call, picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay_base import Comparing
from replay_seen import plain_value
from replay_values import same


class Told(Comparing):
    """Compares what a chart says of itself."""

    def on_description_facts(self, recorded: Any) -> None:
        """Compare which descriptions the tool text holds."""
        self.told("description_facts", "descriptions in the text")
        text = self.replay.chart.describe()
        for name, described in recorded["stageDescriptions"].items():
            stage = next((s for s in self.shape.walk() if name in (s.name, s.step.get("id"))), None)
            for word in (name if stage is None else stage.name, described):
                if isinstance(word, str) and word not in text:
                    self.differ("description_facts", f"{word!r} is not in {text!r}")

    def on_mcp(self, recorded: Any) -> None:
        """Compare the chart as a tool."""
        self.told("mcp", "name, schema, mentions")
        from runbook_nb.chart.contract import tool_description

        found = tool_description(self.replay.chart)
        if found["name"] != recorded["name"]:
            self.differ("mcp", f"{recorded['name']!r} is {found['name']!r}")
        schema = found.get("inputSchema", found.get("input_schema"))
        if not same(recorded["inputSchema"], plain_value(schema)):
            self.differ("mcp", f"{recorded['inputSchema']} is {schema}")
        for word, mentioned in recorded["description_mentions"]:
            if mentioned and word not in found["description"]:
                self.differ("mcp", f"{word!r} is not mentioned")

    def on_openapi(self, recorded: Any) -> None:
        """Compare the document of the chart as a web call, but for its texts."""
        self.told("openapi", "document")
        from runbook_nb.chart.openapi import openapi

        found = plain_value(openapi(self.replay.chart))
        missing = _not_in(recorded, found)
        if missing:
            self.differ("openapi", f"{missing} in {found}")
        if not same(_texts_out(found, recorded), recorded):
            self.departs("a-document-says-what-may-fail")

    def on_mermaid(self, recorded: Any) -> None:
        """Compare what the picture shows: a node per stage, its name in it."""
        self.told("mermaid", "every stage is drawn")
        text = self.replay.chart.flowchart().mermaid
        for line in recorded:
            id, mark, label = line.partition('["')
            if not mark or "-->" in id or id == "default":
                continue
            stage = self.shape.at(id)
            if stage is not None and stage.owner is not None and label[:-2] not in text:
                self.departs("branches-are-drawn-by-their-word")
                label = f"{stage.step['id']}--"
            if label[:-2] not in text:
                self.differ("mermaid", f"{label[:-2]!r} is not drawn")


def _not_in(recorded: Any, found: Any, where: str = "") -> list[str]:
    """Say what of a recorded document is not in ours."""
    if recorded == {"$text": True}:
        return [] if isinstance(found, str) and found else [f"{where} is no text"]
    if isinstance(recorded, Mapping):
        if not isinstance(found, Mapping):
            return [f"{where} is {found!r}"]
        return [
            one
            for key, value in recorded.items()
            for one in (
                _not_in(value, found[key], f"{where}/{key}")
                if key in found
                else [f"{where}/{key} is missing"]
            )
        ]
    return [] if same(recorded, found) else [f"{where} is {found!r}"]


def _texts_out(found: Any, recorded: Any) -> Any:
    if recorded == {"$text": True}:
        return {"$text": True} if isinstance(found, str) and found else found
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        return {key: _texts_out(one, recorded.get(key)) for key, one in found.items()}
    return found
