"""Procedures the drawings are tried on, and what of a drawing can be compared over engines."""

import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from runbook_nb._view import Flow, Graph, GraphEdge, GraphGroup, GraphLine, GraphNode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.outline import walk_flow
from runbook_nb.render import svg
from runbook_nb.render.layouts import ENGINES
from runbook_nb.rules import Default, Rule, RuleSet
from runbook_nb.settings import settings

# The charts of every kind stand beside the tests of the record.
sys.path.insert(0, str(Path(__file__).parents[2] / "record"))

SVG = "{http://www.w3.org/2000/svg}"

#: Names that mean something to DOT, Mermaid, SVG, HTML or a terminal.
HOSTILE = (
    "a::b",
    "host:443",
    'it\'s "x"',
    r"\N",
    r"\G and \l",
    "ends in \\",
    r"C:\new\table",
    "</text><script>alert(1)</script>",
    "]]> <![CDATA[",
    "&lt;script&gt; &amp;",
    "<b>bold</b>",
    "<>",
    "%%{init: {'theme':'dark'}}%%",
    "%%%%{{",
    "click n1 callback",
    "`code` #quot; #35;",
    "graph",
    "n1 -> n2; }",
    "line\nbreak\x1b[31m",
    "bidi \u202e\u2066override",
    "備份資料庫",
    "\u00e9t\u00e9 \u2713 \U0001f600",
    "x" * 300,
    " ",
)


def load(scope):
    scope.update(scope.args["item"])


def triage(rows, cap, *, exempt):
    rules = [Rule({"age_known": {"eq": False}}, "declined", label="the age signal is unreadable")]
    if exempt:
        rules.append(Rule({"policy": {"eq": "exempt"}}, "exempt", label="exempt by written policy"))
    label = "last backup older than the 7-day threshold"
    rules.append(Rule({"age_days": {"gt": 7}}, "unprotected", label=label))
    posture = RuleSet(
        "health-signal",
        "v1",
        rules=rules,
        default=Default("protected", label="last backup within the 7-day threshold"),
    )
    routes = ["protected", "unprotected", *(["exempt"] if exempt else []), "declined"]
    subject = flow_chart("subject", load, id="load", stage_name="load").add_decider(
        "Protection posture", rules=posture, id="posture"
    )
    for route in routes:
        subject = subject.branch(route, lambda scope: None)
    return (
        flow_chart(
            "backup-protection-triage",
            lambda s: s.set("rows", rows),
            id="inventory",
            stage_name="inventory",
        )
        .add_parallel_for_each(
            "Assess each subject",
            id="per-subject",
            items=lambda s: s["rows"],
            branch=subject.end().build(),
            max_branches=cap,
            into="results",
            subject="subject",
        )
        .add_function("Collect", lambda s: None, id="collect")
        .build()
    )


def row(subject, age, known):
    return {"subject": subject, "age_days": age, "age_known": known, "policy": "standard"}


@pytest.fixture(scope="session")
def small():
    """The published example: three subjects, three outcomes."""
    rows = [row("cluster-a", 2, True), row("cluster-b", 30, True), row("cluster-c", None, False)]
    return triage(rows, 50, exempt=False).run_sync().walk


@pytest.fixture(scope="session")
def large():
    """The same over 312 subjects with a cap of 303, one branch not taken."""
    ages = [8, 9, 12, 14, 21, 30, 44]
    rows = [row(f"s{n}", ages[n] if n < 7 else n % 7, not 7 <= n < 21) for n in range(312)]
    return triage(rows, 303, exempt=True).run_sync().walk


def engines():
    """Give every engine, those that are not here marked to be skipped with the reason."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.skipif(not engine.available(), reason=f"layout {name} is not here"),
        )
        for name, engine in ENGINES.items()
    ]


@pytest.fixture(params=engines())
def engine(request):
    """Every layout engine of this machine, one after the other."""
    with settings(layout=request.param):
        yield request.param


@pytest.fixture
def pure():
    """Draw with the engine whose bytes are the same everywhere, or skip."""
    if not ENGINES["pure"].available():
        pytest.skip("layout pure is not here")
    with settings(layout="pure"):
        yield


@pytest.fixture(autouse=True)
def _nothing_kept():
    svg._kept.clear()


def flow_of(walk):
    return walk_flow(walk)


def root(text):
    """Read a picture of ours."""
    return ElementTree.fromstring(text)  # noqa: S314 - we wrote it


def texts(drawing):
    """Give the text of every node and edge group of a picture, in order, lines joined."""
    found = []
    for group in root(drawing.svg).iter(f"{SVG}g"):
        lines = [
            "".join(t.itertext()).replace("\u00a0", " ").strip()
            for t in group.findall(f"{SVG}text")
        ]
        kind = (group.get("class") or "").split()
        found.append((kind, lines))
    return found


def node(key, title, **more):
    return GraphNode(key=key, title=title, **more)


def chain(*titles):
    """A flow whose stages follow each other."""
    nodes = tuple(node(str(n), title, state="ran") for n, title in enumerate(titles))
    edges = tuple(
        GraphEdge(
            source=str(n),
            target=str(n + 1),
            state="taken",
            lines=(GraphLine(kind="condition", text=titles[n]),),
        )
        for n in range(len(titles) - 1)
    )
    return Flow(lines=(), graph=Graph(nodes=nodes, edges=edges), summary="a chain")


@pytest.fixture(scope="session")
def tools():
    """The helpers of this folder."""
    return SimpleNamespace(
        HOSTILE=HOSTILE,
        chain=chain,
        edge=GraphEdge,
        flow=flow_of,
        graph=Graph,
        group=GraphGroup,
        line=GraphLine,
        node=node,
        root=root,
        texts=texts,
    )
