"""Claims about the structure: that its parts belong together, and that what ran is in it.

Bridge layer. How a stage is called stands nowhere else in most answers; a record or a walk that was
filed tells it again, and then it is held against that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, get_args

from runbook_nb._json import to_wire
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    NOTHING_ELSE,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
    Status,
)
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.structure import (
    EdgeKind,
    NodeKind,
    Structure,
    StructureEdge,
    StructureNode,
)
from runbook_nb.rules.model import DECLINED_BRANCH
from runbook_nb.runbook.grounds import Ground

_Part = TypeVar("_Part")

BASE: Final[Place] = ("dossier", "structure")
ITSELF: Final = "the other parts of the structure"


def claim_structure(ground: Ground, claims: Claims) -> None:
    """Claim what could have happened, and the procedure it was; a live answer reads the record."""
    dossier = ground.dossier
    if dossier is None or ground.live:
        return
    structure = dossier.structure
    _procedure(ground, claims)
    _keys(structure, claims)
    _edges(structure, claims)
    _groups(structure, claims)
    _deciders(ground, structure, claims)
    _names(ground, structure, claims)
    for number, node in enumerate(structure.nodes):
        _words(ground, claims, node, (*BASE, "nodes", number))


def _procedure(ground: Ground, claims: Claims) -> None:
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - see `claim_structure`
    name, sentence = dossier.procedure, str(ground.coverage.get("sentence", ""))
    told = f"the procedure is {name}"
    places: tuple[Place, ...] = (("dossier", "procedure"), (*BASE, "name"))
    if not sentence or PLACEHOLDER in sentence:
        pair = (dossier.structure.name, name)
        holds = pair[0] == name
        claims.settle("structure.procedure", told, holds, "the dossier", *places, told=pair)
        return
    holds = sentence.startswith(f"Ran '{name}'") and dossier.structure.name == name
    found = [dossier.structure.name, name]
    claims.settle(
        "structure.procedure",
        told,
        holds,
        "the sentence of the ledger",
        *places,
        told=(found, sentence),
    )


def _keys(structure: Structure, claims: Claims) -> None:
    """Claim that every node has a key of its own, made of its id, and a kind there is."""
    nodes = structure.nodes
    times = Counter(node.key for node in nodes)
    joined = {key for edge in structure.edges for key in (edge.source, edge.target)}
    joined |= {member for _, members in structure.groups for member in members}

    def fits(node: StructureNode) -> bool:
        named = node.key == node.id or node.key.endswith(f"/{node.id}")
        alone = len(nodes) == 1 or node.key in joined
        kind = node.kind in get_args(NodeKind) and _fits_kind(structure, node)
        return times[node.key] == 1 and named and alone and kind

    good, bad = _parted(nodes, fits)

    def tell(number: int) -> tuple[Any, Any]:
        node = nodes[number]
        return "a node that its edges and branches know", f"{node.id}, a {node.kind}"

    claims.many(
        "structure.node",
        "it is joined to the others",
        [
            Outcome(CONTRADICTED, bad, "the nodes and edges around it", tell),
            Outcome(CONFIRMED, good, "the nodes and edges around it"),
        ],
        lambda number: nodes[number].key,
        lambda numbers: tuple(
            (*BASE, "nodes", numbers, part) for part in ("key", "id", "kind", "branch", "decider")
        ),
        singly=False,
    )


def _parted(parts: Iterable[_Part], fits: Callable[[_Part], bool]) -> tuple[list[int], list[int]]:
    """Give the numbers of the parts that fit, and of those that do not."""
    good: list[int] = []
    bad: list[int] = []
    for number, part in enumerate(parts):
        (good if fits(part) else bad).append(number)
    return good, bad


def _fits_kind(structure: Structure, node: StructureNode) -> bool:
    """Say whether a node is where its kind may be, and what it heads is of its kind."""
    if (node.kind == "branch") != (node.branch is not None and node.decider is not None):
        return node.kind != "branch" and _heads_branch(structure, node)
    if node.branch is not None:
        head = structure.node(node.decider or "")
        entering = {edge.kind for edge in structure.edges if edge.target == node.key}
        return head is not None and head.kind in ("decider", "selector", "fork") and bool(entering)
    out = {edge.kind for edge in structure.out_of(node.key)}
    if "fan_out" in out and node.kind != "fan_out":
        return False
    return node.kind in ("decider", "selector", "fork") or not {"branch", "default"} & out


def _heads_branch(structure: Structure, node: StructureNode) -> bool:
    """Say whether a branch that is a stage of another kind hangs on its decider."""
    if node.branch is None or node.decider is None:
        return node.branch is None and node.decider is None
    return structure.node(node.decider) is not None


def _edges(structure: Structure, claims: Claims) -> None:
    """Claim that edges join nodes there are, as nodes of their kinds can be joined."""
    edges = structure.edges
    twins = Counter((edge.source, edge.target, edge.kind) for edge in edges)
    nodes = {node.key: node for node in structure.nodes}

    def fits(edge: StructureEdge) -> bool:
        source, target = nodes.get(edge.source), nodes.get(edge.target)
        if source is None or target is None or edge.kind not in get_args(EdgeKind):
            return False
        hangs = edge.kind not in ("branch", "default") or target.decider == edge.source
        inside = edge.kind != "fan_out" or source.kind == "fan_out"
        labelled = edge.label is None or target.branch is None or edge.label == target.branch
        return twins[edge.source, edge.target, edge.kind] == 1 and hangs and inside and labelled

    good, bad = _parted(edges, fits)

    def name(number: int) -> str:
        return f"{edges[number].source} -> {edges[number].target}"

    places = {node.key: place for place, node in enumerate(structure.nodes)}

    def led_to(numbers: Any) -> frozenset[int | None]:
        some = [numbers] if isinstance(numbers, int) else numbers
        return frozenset(places.get(edges[number].target) for number in some)

    def tell(number: int) -> tuple[Any, Any]:
        edge = edges[number]
        label = "" if edge.label is None else f", {edge.label}"
        return "an edge between nodes there are", f"{name(number)}, {edge.kind}{label}"

    claims.many(
        "structure.edge",
        "it joins nodes there are",
        [
            Outcome(CONTRADICTED, bad, "the nodes", tell),
            Outcome(CONFIRMED, good, "the nodes"),
        ],
        name,
        lambda numbers: ((*BASE, "edges", numbers), (*BASE, "nodes", led_to(numbers), "branch")),
        singly=False,
    )


def _groups(structure: Structure, claims: Claims) -> None:
    """Claim that what lies inside a stage are nodes there are, and lies there by its key."""
    known = {node.key for node in structure.nodes}
    bad = {
        number: [m for m in members if m not in known or not m.startswith(f"{key}/")] or [key]
        for number, (key, members) in enumerate(structure.groups)
        if key not in known or not all(m in known and m.startswith(f"{key}/") for m in members)
    }
    good = [number for number in range(len(structure.groups)) if number not in bad]
    claims.many(
        "structure.group",
        "what is inside it are nodes there are",
        [
            Outcome(CONTRADICTED, list(bad), "the nodes", lambda n: ("nodes inside it", bad[n])),
            Outcome(CONFIRMED, good, "the nodes"),
        ],
        lambda number: structure.groups[number][0],
        lambda numbers: ((*BASE, "groups", numbers),),
        singly=False,
    )


def _deciders(ground: Ground, structure: Structure, claims: Claims) -> None:
    """Claim that the configured decider is in the structure, with the branches that were taken."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - see `claim_structure`
    if dossier.decider is None:
        place = ("dossier", "decider")
        claims.unchecked("structure.decider", "no decider names verdicts", NOTHING_ELSE, place)
    else:
        told, place = f"{dossier.decider} names the verdicts", ("dossier", "decider")
        found = any(structure.find(dossier.decider, "decider"))
        others = any(node.kind == "decider" for node in structure.nodes)
        if found:
            claims.settle("structure.decider", told, True, "the structure", place)
        elif others:
            names = [node.name for node in structure.nodes if node.kind == "decider"]
            basis = "the structure"
            claims.settle(
                "structure.decider", told, False, basis, place, told=(dossier.decider, names)
            )
        else:
            claims.unchecked("structure.decider", told, "the structure has no decider", place)
    for group in dossier.fan_outs:
        inside = [
            node.branch
            for node in structure.nodes
            if node.branch is not None and structure.fan_out_of(node.key) == group.key
        ]
        if not inside or not group.counts.by_branch:
            continue
        taken = set(group.counts.by_branch) - {DECLINED_BRANCH, ""}
        told = f"the branches taken in {group.key} are in the structure"
        claims.settle(
            f"structure.branches[{group.key}]",
            told,
            taken <= set(inside),
            "the branches that were taken",
            *(
                (*BASE, "nodes", number, "branch")
                for number, node in enumerate(structure.nodes)
                if node.branch in taken
            ),
            told=(inside, sorted(taken)),
        )


def _names(ground: Ground, structure: Structure, claims: Claims) -> None:
    """Claim how the nodes are called: by the counts, by the walk that was filed, or by nothing."""
    nodes, filed = structure.nodes, ground.filed_names
    assert ground.dossier is not None  # noqa: S101 - see `claim_structure`
    counts = {group.key: group.counts.stage_name for group in ground.dossier.fan_outs}
    found: dict[tuple[Status, str], list[int]] = {}
    for number, node in enumerate(nodes):
        if node.key in counts:
            holds, basis = node.name == counts[node.key], "the counts of the fan-outs"
        elif node.id in filed:
            holds, basis = node.name in filed[node.id], "the walk that was filed"
        else:
            found.setdefault((UNCHECKED, NOTHING_ELSE), []).append(number)
            continue
        found.setdefault((CONFIRMED if holds else CONTRADICTED, basis), []).append(number)

    def tell(number: int) -> tuple[Any, Any]:
        node = nodes[number]
        return counts.get(node.key) or sorted(filed.get(node.id, ())), node.name

    claims.many(
        "structure.name",
        "it is called so",
        [Outcome(status, numbers, why, tell) for (status, why), numbers in found.items()],
        lambda number: nodes[number].key,
        lambda numbers: ((*BASE, "nodes", numbers, "name"),),
        singly=False,
    )


def _words(ground: Ground, claims: Claims, node: StructureNode, base: Place) -> None:
    """Claim the author's words about a node, and its details."""
    if node.description or node.tags or node.added:
        words = node.description or ", ".join(node.tags) or "made by the builder"
        places = [(*base, part) for part in ("description", "tags", "added")]
        claims.unchecked(f"structure.node[{node.key}].words", words, NOTHING_ELSE, *places)
    if node.detail:
        _detail(ground, claims, node, (*base, "detail"))


def _detail(ground: Ground, claims: Claims, node: StructureNode, base: Place) -> None:
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - see `claim_structure`
    rest = dict(to_wire(node.detail))
    id_ = f"structure.node[{node.key}]"
    rules = rest.get("rules")
    titles = {f"{s.name} {s.version}".strip() for s in dossier.sources}
    named = _rules_named(dossier.structure)
    if isinstance(rules, str) and named is not None:
        told, basis = f"{node.key} decides by {rules}", "the rules that judged"
        place, unnamed = (*base, "rules"), sorted(titles - named.keys())
        if rules in titles and named[rules] == 1:
            del rest["rules"]
            claims.settle(f"{id_}.rules", told, True, basis, place)
        elif rules not in titles and unnamed:
            del rest["rules"]
            claims.settle(f"{id_}.rules", told, False, basis, place, told=(rules, unnamed))
    if rest:
        told = f"{node.key}: {rest}"
        places = ((*base, name) for name in rest)
        claims.unchecked(f"{id_}.detail", told, NOTHING_ELSE, *places)


def _rules_named(structure: Structure) -> Counter[str] | None:
    """Count the deciders that name each rule set; None where some judge by a function."""
    deciders = [node for node in structure.nodes if node.kind in ("decider", "selector")]
    names = [node.detail.get("rules") for node in deciders]
    if not all(isinstance(name, str) for name in names):
        return None
    return Counter(str(name) for name in names)
