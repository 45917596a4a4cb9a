"""Pages that are written from the package itself: reference, errors, changelog, notebooks.

They are made when a build starts and are never edited. What they hold is found without Sphinx, so
that a test can look at it; ``setup`` alone is for Sphinx.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "runbook_nb"

#: Package -> title of its page and what is on it, in the order of the reference.
GROUPS = {
    "rules": ("Rules", "Declaring rules and judging with them: [](../rules.md)."),
    "chart": ("Charts", "Building procedures and running them: [](../charts.md)."),
    "record": ("The record", "What a run leaves, and its views: [](../record.md)."),
    "coverage": ("Coverage", "Saying what an answer stands on: [](../envelope.md#the-ledger)."),
    "tools": ("Tools", "Declaring tools and calling them through gates: [](../tools.md)."),
    "artifacts": ("Artifacts", "Filing payloads under tickets: [](../howto/keep-artifacts.md)."),
    "runbook": ("Runbooks", "Procedures as tools, and their answers: [](../envelope.md)."),
    "playbooks": (
        "Playbooks",
        "Orders of steps, held over whoever calls tools: [](../playbook-files.md), "
        "[](../playbook-formats.md).",
    ),
    "widgets": (
        "Widgets",
        "Running runbooks from a cell: [](../howto/run-from-a-form.md). "
        "Changing rules by hand: [](../howto/iterate-rules.md). "
        "Going through a walk: [](../howto/explore-a-walk.md).",
    ),
    "share": (
        "Keeping and handing on",
        "Keeping a history of runs: [](../howto/keep-a-history.md). "
        "Making a notebook safe to hand on: [](../howto/share-a-notebook.md). "
        "Checking what somebody handed on: [](../howto/check-an-answer.md).",
    ),
    "": ("Settings and the rest", "Options of the process, and the request to stop."),
}

#: Classes that public calls give back and that have no public name of their own.
GIVEN_BACK = {
    "rules": [
        "runbook_nb.rules.Selection",
        "runbook_nb.rules.revision.Revision",
        "runbook_nb.rules.changes.RuleChange",
        "runbook_nb.rules.changes.FieldChange",
        "runbook_nb.rules.silent.Silent",
        "runbook_nb.rules.silent.Taker",
    ],
    "chart": [],
    "record": [
        "runbook_nb.record.slots.Slots",
        "runbook_nb.record.walk.RecordedDecision",
        "runbook_nb.record.commits.WholeLog",
        "runbook_nb.record.commit.Change",
        "runbook_nb.record.queries.StateAt",
        "runbook_nb.record.queries.Births",
        "runbook_nb.record.queries.Birth",
        "runbook_nb.record.queries.CommitSlice",
        "runbook_nb.record.queries.SliceNode",
        "runbook_nb.record.queries.Stop",
        "runbook_nb.record.why.WhyNode",
        "runbook_nb.record.why.WhyEdge",
        "runbook_nb.record.why.WhySource",
    ],
    "coverage": [],
    "tools": ["runbook_nb.tools.ToolCall"],
    "artifacts": [
        "runbook_nb.artifacts.ArtifactScope",
        "runbook_nb.artifacts.BoundArtifacts",
        "runbook_nb.artifacts.PutResult",
        "runbook_nb.artifacts.ArtifactPage",
        "runbook_nb.artifacts.Swept",
    ],
    "runbook": [
        "runbook_nb.runbook.envelope.VerdictTable",
        "runbook_nb.runbook.explanation.Explanation",
        "runbook_nb.runbook.filed.FiledWalk",
        "runbook_nb.runbook.dossier.Dossier",
        "runbook_nb.runbook.dossier.SubjectFacts",
        "runbook_nb.runbook.rejudging.Rejudged",
        "runbook_nb.runbook.comparing.Comparison",
        "runbook_nb.runbook.comparing.Flip",
        "runbook_nb.runbook.comparing.FlipGroup",
        "runbook_nb.runbook.comparing.Uncompared",
        "runbook_nb.runbook.causes.Cause",
        "runbook_nb.runbook.sides.Side",
        "runbook_nb.runbook.sides.Standing",
    ],
    "playbooks": [
        "runbook_nb.playbooks.byhand.StepByHand",
        "runbook_nb.playbooks.run.PlaybookRun",
        "runbook_nb.playbooks.report.PlaybookReport",
        "runbook_nb.playbooks.procedure.PlaybookProcedure",
        "runbook_nb.playbooks.procedure.Turn",
        "runbook_nb.playbooks.problems.FileProblem",
        "runbook_nb.playbooks.problems.PlaybookWarning",
        "runbook_nb.playbooks.scopes.RunInfo",
        "runbook_nb.playbooks.tickets.Ticket",
        "runbook_nb.playbooks.tickets.Refusal",
        "runbook_nb.playbooks.lint.PlaybookLint",
        "runbook_nb.playbooks.lint.LintFinding",
        "runbook_nb.playbooks.cacao_losses.CacaoLosses",
        "runbook_nb.playbooks.cacao_losses.CacaoLoss",
        "runbook_nb.playbooks.eventlog.EventLog",
        "runbook_nb.playbooks.declared.DeclareRule",
    ],
    "widgets": ["runbook_nb.widgets.explorer.Explorer"],
    "share": [
        "runbook_nb.share.shared.SharedNotebook",
        "runbook_nb.share.shared.ShareFinding",
        "runbook_nb.share.history.RunEntry",
        "runbook_nb.share.history.RunHistory",
        "runbook_nb.share.history.Forgotten",
    ],
    "": ["runbook_nb.settings.Options"],
}

#: Longest value of a constant that stands beside its name.
SHORT = 60


# -- the reference ---------------------------------------------------------------------------


def public_groups() -> dict[str, list[str]]:
    """Give every public name under the package it lives in, in declared order."""
    import runbook_nb

    groups: dict[str, list[str]] = {key: [] for key in GROUPS}
    for name in runbook_nb.__all__:
        if name in ("errors", "__version__"):  # the errors have a page of their own
            continue
        home = runbook_nb._HOMES[name].partition(".")[0]
        key = home if (PACKAGE / home).is_dir() else ""
        groups.setdefault(key, []).append(name)
    return {key: names for key, names in groups.items() if names}


def page_name(group: str) -> str:
    """Name the page of a group."""
    return group or "settings"


def reference_pages() -> dict[str, str]:
    """Write the reference: page name -> MyST text."""
    import runbook_nb

    pages = {}
    for group, names in public_groups().items():
        title, about = GROUPS.get(group, (group.capitalize(), ""))
        parts = [f"# {title}", about] if about else [f"# {title}"]
        entries = [entry(name, getattr(runbook_nb, name), group) for name in names]
        parts.append(_rst(entries, "runbook_nb"))
        given = GIVEN_BACK.get(group, [])
        if given:
            parts.append("## What these give back")
            parts.append("You meet these as results; they are not imported by name.")
            for path in given:
                module, _, name = path.rpartition(".")
                value = getattr(import_module(module), name)
                parts.append(_rst([entry(name, value, group)], module))
        pages[page_name(group)] = "\n\n".join(parts) + "\n"
    return pages


def _rst(entries: Iterable[str], module: str) -> str:
    body = "\n\n".join(entries)
    return f"````{{eval-rst}}\n.. py:currentmodule:: {module}\n\n{body}\n````"


def entry(name: str, value: Any, group: str) -> str:
    """Write the directive that documents one name."""
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return f".. {kind}:: {name}\n   :members:"
    if inspect.isroutine(value):
        return f".. autofunction:: {name}"
    text = comment_of(name, group)
    if value.__class__.__module__.startswith("runbook_nb"):
        return f".. py:data:: {name}\n\n   {inspect.getdoc(type(value)).splitlines()[0]}"
    shown = value if not isinstance(value, str) else repr(value)
    shown = re.sub(r"\b(?:typing|collections\.abc)\.", "", str(shown))
    if len(shown) <= SHORT:
        return f".. py:data:: {name}\n   :value: {shown}\n\n   {text}"
    return f".. py:data:: {name}\n\n   {text}\n\n   .. code-block:: text\n\n      {value}"


def comment_of(name: str, group: str) -> str:
    """Give the ``#:`` comment above a constant's definition; empty where there is none."""
    pattern = re.compile(rf"((?:^#:.*\n)+){name}\b[^\n]*=", re.MULTILINE)
    for path in sorted((PACKAGE / group).rglob("*.py")):
        found = pattern.search(path.read_text(encoding="utf-8"))
        if found:
            return " ".join(line.removeprefix("#:").strip() for line in found[1].splitlines())
    return ""


# -- errors ----------------------------------------------------------------------------------


@dataclass
class ErrorClass:
    """An error class as its source declares it, with the codes it is raised with."""

    name: str
    module: str
    bases: list[str]
    code: str | None
    doc: str
    codes: dict[str, set[str]] = field(default_factory=dict)


def error_classes() -> dict[str, ErrorClass]:
    """Read every error class of the package, and every code a place in the source gives one."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources()}
    found = _classes(trees)
    helpers = {module_of(path): _helpers(tree, found) for path, tree in trees.items()}
    for path, tree in trees.items():
        own = {**_brought(tree, helpers), **helpers[module_of(path)]}
        for name, code in _codes(tree, found, own):
            found[name].codes.setdefault(code, set()).add(module_of(path))
    return found


def sources() -> list[Path]:
    """List the modules of the package, those of the shipped examples apart."""
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "examples" not in p.parts]


def module_of(path: Path) -> str:
    """Name the module a file holds."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _classes(trees: dict[Path, ast.Module]) -> dict[str, ErrorClass]:
    known = {"RunbookError", "RunSignal"}
    found: dict[str, ErrorClass] = {}
    before = -1
    while len(found) > before:  # a class may stand before its base, in another file
        before = len(found)
        for path, tree in trees.items():
            for node in tree.body:
                if not isinstance(node, ast.ClassDef) or node.name in found:
                    continue
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                if node.name not in known and not known & set(bases):
                    continue
                known.add(node.name)
                doc = (ast.get_docstring(node) or "").partition("\n\n")[0]
                found[node.name] = ErrorClass(
                    node.name, module_of(path), bases, _own_code(node), doc.replace("\n", " ")
                )
    for one in found.values():  # what a class does not say, its base says
        base = next((found[b] for b in one.bases if b in found), None)
        while one.code is None and base is not None:
            one.code = base.code
            base = next((found[b] for b in base.bases if b in found), None)
    return found


def _own_code(node: ast.ClassDef) -> str | None:
    for line in node.body:
        if (
            isinstance(line, ast.Assign)
            and isinstance(line.targets[0], ast.Name)
            and line.targets[0].id == "code"
            and isinstance(line.value, ast.Constant)
        ):
            return str(line.value.value)
    return None


#: Helpers that make an error, by name: which argument is its code, and which class it is of.
Helpers = dict[str, tuple[int, str]]


def _helpers(tree: ast.Module, classes: dict[str, ErrorClass]) -> Helpers:
    helpers: Helpers = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in node.args.args]
            if "code" in names:
                for call in ast.walk(node):
                    if _name(call) in classes:
                        helpers[node.name] = (names.index("code"), _name(call))
    return helpers


def _brought(tree: ast.Module, helpers: dict[str, Helpers]) -> Helpers:
    """Give the helpers that a module imports from another."""
    return {
        alias.asname or alias.name: helpers[node.module][alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in helpers
        for alias in node.names
        if alias.name in helpers[node.module]
    }


def _codes(
    tree: ast.Module, classes: dict[str, ErrorClass], helpers: Helpers
) -> Iterator[tuple[str, str]]:
    """Yield class and code wherever a literal code is given, directly or through a helper."""
    for node in ast.walk(tree):
        name = _name(node)
        if name in classes:
            given = next((k.value for k in node.keywords if k.arg == "code"), None)
        elif name in helpers:
            place, name = helpers[name]
            given = node.args[place] if place < len(node.args) else None
        else:
            continue
        either = (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,)
        for one in either:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield name, one.value


def _name(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else ""


def errors_page() -> str:
    """Write the page of the errors."""
    classes = error_classes()
    rows = sorted(
        {(code, one.name) for one in classes.values() for code in one.codes}
        | {(one.code, one.name) for one in classes.values() if one.code}
    )
    where = {
        (code, one.name): modules for one in classes.values() for code, modules in one.codes.items()
    }
    lines = [
        "# Errors and their codes",
        "Every error the package raises on purpose is a {py:obj}`~runbook_nb.errors.RunbookError`. "
        "Its text says what happened, which name it concerns and what to write instead; its `code` "
        "does not change between versions, so a program may branch on it. `where` is the name or "
        "place, `fix` the advice, `problems` the list when several things were wrong at once, and "
        "`run` the run so far when the error ended one.",
        "Both tables are read off the source when this page is built.",
        "## Codes",
        "\n".join(
            ["| code | class | given by |", "|---|---|---|"]
            + [
                f"| `{code}` | {_reference(classes[name])} | {_given_by(where.get((code, name)))} |"
                for code, name in rows
            ]
        ),
        "A class whose own code is not in the last column uses it wherever nothing more special "
        "was said.",
        "## Classes",
        "Import the ones in `runbook_nb.errors` by name. The others are caught by their base and "
        "told apart by their code.",
    ]
    for one in sorted(classes.values(), key=lambda c: (c.module != "runbook_nb.errors", c.name)):
        lines.append(_rst([f".. autoexception:: {one.name}"], one.module))
    return "\n\n".join(lines) + "\n"


def _reference(one: ErrorClass) -> str:
    return f"{{py:obj}}`~{one.module}.{one.name}`"


def _given_by(modules: set[str] | None) -> str:
    if not modules:
        return "the class itself"
    return ", ".join(f"`{m.removeprefix('runbook_nb.')}`" for m in sorted(modules))


# -- changelog and notebooks -----------------------------------------------------------------

KINDS = {
    "breaking": "Breaking",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
    "security": "Security",
}


def changelog_page(root: Path = ROOT) -> str:
    """Write the changelog: what is announced and not yet released, then the releases."""
    released = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    released = released.partition("<!-- towncrier release notes start -->")[2].strip()
    lines = ["# Changelog", "## Not yet released"]
    fragments = sorted((root / "changelog.d").glob("*.md"))
    for kind, title in KINDS.items():
        texts = [
            path.read_text(encoding="utf-8").strip()
            for path in fragments
            if path.suffixes[-2:-1] == [f".{kind}"]
        ]
        if texts:
            lines += [f"### {title}", "\n".join(f"- {_item(text)}" for text in texts)]
    if not fragments:
        lines.append("Nothing yet.")
    return "\n\n".join([*lines, *([released] if released else [])]) + "\n"


def _item(text: str) -> str:
    return text.replace("\n", "\n  ")


def notebooks_page(names: Iterable[str]) -> str:
    """Write the list of notebooks: those that exist, or that there are none."""
    entries = "\n".join(f"notebooks/{name}" for name in sorted(names))
    if not entries:
        return "# Notebooks\n\nNone yet.\n"
    return (
        "# Notebooks\n\n"
        "Documents that were run, shown with the outputs they were saved with. Each is a test as "
        "well: what you see is compared with what the code gives.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    )


def write(path: Path, text: str) -> None:
    """Write a page where it differs, so that an unchanged one is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_all(docs: Path, root: Path = ROOT) -> None:
    """Write every generated page, and take away those that are made no more."""
    made = {docs / "reference" / f"{name}.md": text for name, text in reference_pages().items()}
    made[docs / "reference" / "errors.md"] = errors_page()
    made[docs / "changelog.md"] = changelog_page(root)
    names = [path.stem for path in (root / "notebooks").glob("*.ipynb")]
    made[docs / "notebooks.md"] = notebooks_page(names)
    for path, text in made.items():
        write(path, text)
    for path in (docs / "reference").glob("*.md"):
        if path not in made and path.name != "index.md":
            path.unlink()
    copy_notebooks(root / "notebooks", docs / "notebooks")


def copy_notebooks(source: Path, target: Path) -> None:
    """Bring the notebooks that exist to where pages are built from."""
    wanted = {path.name: path for path in source.glob("*.ipynb")}
    for path in target.glob("*.ipynb"):
        if path.name not in wanted:
            path.unlink()
    for name, path in wanted.items():
        copy = target / name
        target.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


# -- the build -------------------------------------------------------------------------------

_FETCHED = re.compile(
    r'<(?:script|img|iframe|source|link(?![^>]*rel="(?:canonical|next|prev)"))\b'
    r'[^>]*?(?:src|href)="(?:https?:)?//[^"]*"'
)


def fetched(html: str) -> list[str]:
    """List what a page would fetch from elsewhere when it is opened."""
    return _FETCHED.findall(html)


def _before(app: Any) -> None:
    write_all(Path(app.srcdir))


def _after(app: Any, error: Exception | None) -> None:
    """Look at what was built: every public name is documented, and no page fetches anything."""
    if error is not None:
        return
    from sphinx.util import logging

    import runbook_nb

    log = logging.getLogger(__name__)
    documented = app.env.get_domain("py").objects
    for name in runbook_nb.__all__:
        if name not in ("errors", "__version__") and f"runbook_nb.{name}" not in documented:
            log.warning("%s is public and not in the reference", name)
    if app.builder.format == "html":
        for path in sorted(Path(app.outdir).rglob("*.html")):
            for found in fetched(path.read_text(encoding="utf-8")):
                log.warning("%s fetches from elsewhere: %s", path.name, found)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", _before)
    app.connect("build-finished", _after)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
