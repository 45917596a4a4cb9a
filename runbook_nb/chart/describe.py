"""What a chart does, in words, stage by stage.

Chart layer. Branches are told with their meanings, fan-outs with what runs inside. The text is for
a model's tool description or a reader; it is made from the chart alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from runbook_nb._text import visible
from runbook_nb.chart.model import Chart, DeciderStage, FanOutStage, Stage, default_route


def describe_chart(chart: Chart) -> str:
    """Describe a chart.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = (flow_chart("restart", print, id="look", description="Look at the node.")
    ...     .add_function("Report", print, id="report").build())
    >>> print(describe_chart(chart))
    restart: Look at the node.
    1. restart
    2. Report
    """
    title = visible(chart.name)
    if chart.description:
        title = f"{title}: {visible(chart.description)}"
    return "\n".join([title, *_lines(chart, "")])


def _lines(chart: Chart, indent: str) -> Iterator[str]:
    for number, stage in enumerate(chart.stages, 1):
        yield f"{indent}{number}. {_named(stage, chart)}"
        if isinstance(stage, DeciderStage):
            yield from _branches(stage, f"{indent}   ")
        elif isinstance(stage, FanOutStage):
            yield f"{indent}   for each item, at most {stage.max_branches}:"
            if isinstance(stage.branch, Chart):
                yield from _lines(stage.branch, f"{indent}   ")
            else:
                yield f"{indent}   a chart made per item"


def _named(stage: Stage, chart: Chart) -> str:
    name = visible(stage.name)
    first = stage is chart.stages[0] and stage.description == chart.description
    return f"{name}: {visible(stage.description)}" if stage.description and not first else name


def _branches(stage: DeciderStage, indent: str) -> Iterator[str]:
    default = default_route(stage)
    judged = f", by {stage.rules.name} {stage.rules.version}" if stage.rules is not None else ""
    yield f"{indent}decides{judged}:"
    for branch in stage.branches:
        said = f": {visible(branch.description)}" if branch.description else ""
        note = " (default)" if branch.route == default else ""
        yield f"{indent}- {visible(branch.route)}{note}{said}"
