"""A replayed case held against its recording, key by key of what was observed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import replay_run
from replay_asked import Asked
from replay_base import Comparison
from replay_ended import Ended
from replay_happened import Happened
from replay_told import Told
from replay_values import HarnessFailure

#: Internal shapes of upstream's, which are not compared.
NOT_COMPARED = {
    "flow",
    "scope",
    "merged",
    "tree",
    "runtime_structure",
    "subflows",
    "subflow_keys",
    "chart_keys",
    "snapshot_keys",
    "dials",
    # Told again by other keys: the edges by the structure, lines by wording.
    "structure_events",
    "description_lines",
}

#: What a chart shows without a run.
BUILT = {"error", "structure", "mcp", "openapi", "mermaid", "description_facts"}


def compare(case: Mapping[str, Any]) -> Comparison:
    """Replay a case and compare everything observed that is not internal to upstream."""
    return _All(case, replay_run.replay(case)).all()


class _All(Ended, Happened, Asked, Told):
    def all(self) -> Comparison:
        """Compare everything."""
        if self._built():
            keys = [key for key in self.observed if key not in NOT_COMPARED]
            if (
                "error" not in keys
                and "build_error" not in keys
                and not self.case.get("build_only")
            ):
                self._no_error()
            elsewhere = self._went_elsewhere()
            for key in keys:
                if elsewhere and key not in BUILT:
                    self.told(key, "the general laws: the run goes another way")
                    continue
                compare: Callable[[Any], None] | None = getattr(self, f"on_{key}", None)
                if compare is None:
                    raise HarnessFailure(f"no comparison of {key!r} in the harness")
                compare(self.observed[key])
        return self.found
