"""Promises that can be read off the source: size, no printing, no pickles, no clock of its own."""

import ast

LONGEST = 600
#: Modules that may ask for the time or for randomness, so that nothing else does.
CLOCK_AND_IDS = {"settings.py", "_ids.py"}
#: Packages that stand on ``render`` or are it: they may use pandas as they like.
DRAWING = ("render/", "agents/", "widgets/", "share/", "testing/", "examples/", "cli/", "magics.py")


def dotted(node: ast.AST) -> str:
    """Spell out a chain of attributes: ``datetime.datetime.now``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> list[str]:
    """List what an import statement names, as full dotted names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def called(node: ast.AST) -> str:
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def test_a_module_has_at_most_600_lines(sources):
    long = {s.name: n for s in sources if (n := len(s.text.splitlines())) > LONGEST}
    assert long == {}


def test_only_the_command_line_prints(sources):
    offenders = [
        source.where(node)
        for source in sources
        if not source.name.startswith("cli/")
        for node in source.nodes()
        if called(node) == "print"
    ]
    assert offenders == []


def test_nothing_is_pickled_but_what_travels_between_workers(sources):
    banned = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    offenders = [
        f"{source.where(node)} {name}"
        for source in sources
        if source.name != "chart/shipping.py"  # to the author's own workers, and back from them
        for node in source.nodes()
        for name in imported(node)
        if name.split(".")[0] in banned
    ]
    assert offenders == []


def test_no_text_is_evaluated_as_code(sources):
    offenders = [
        f"{source.where(node)} {called(node)}"
        for source in sources
        for node in source.nodes()
        if called(node) in {"eval", "exec", "compile", "builtins.eval", "builtins.exec"}
    ]
    assert offenders == []


def test_yaml_is_read_by_safe_loaders_only(sources):
    unsafe = {
        f"yaml.{name}"
        for name in (
            *("CFullLoader", "CLoader", "CUnsafeLoader", "FullLoader", "Loader", "UnsafeLoader"),
            *("full_load", "full_load_all", "unsafe_load", "unsafe_load_all"),
        )
    }
    offenders = [
        f"{source.where(node)} {name}"
        for source in sources
        for node in source.nodes()
        for name in (*imported(node), dotted(node))
        if name in unsafe
    ]
    offenders += [
        f"{source.where(node)} {called(node)} without a Loader"
        for source in sources
        for node in source.nodes()
        if isinstance(node, ast.Call)
        and called(node) in {"yaml.load", "yaml.load_all"}
        and len(node.args) < 2
        and "Loader" not in {keyword.arg for keyword in node.keywords}
    ]
    assert offenders == []


def test_time_ids_and_randomness_come_from_settings(sources):
    calls = {
        *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
        *("time.time", "time.time_ns", "os.urandom"),
        *("uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"),
    }
    modules = {"random", "secrets"}
    offenders = []
    for source in sources:
        if source.name in CLOCK_AND_IDS:
            continue
        for node in source.nodes():
            names = imported(node)
            offenders += [f"{source.where(node)} {n}" for n in names if n.split(".")[0] in modules]
            offenders += [f"{source.where(node)} {n}" for n in names if n in calls]
            chain = dotted(node).split(".")
            if ".".join(chain[-2:]) in calls or "random" in chain[1:]:
                offenders.append(f"{source.where(node)} {dotted(node)}")
    assert offenders == []


#: Where frames are taken in, and given with types.
FRAMES = frozenset({"rules/dataframes.py", "runbook/frames.py"})


def test_below_render_pandas_stays_in_its_corner(sources):
    """In functions that convert to or from frames, and where frames are taken to be judged."""

    def statements(node, corner):
        if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            corner = corner or node.name in {"to_frame", "from_frame"}
        if not corner:
            yield node
        for child in ast.iter_child_nodes(node):
            yield from statements(child, corner)

    offenders = [
        source.where(node)
        for source in sources
        if source.name not in FRAMES and not source.name.startswith(DRAWING)
        for node in statements(source.tree, corner=False)
        for name in imported(node)
        if name.split(".")[0] == "pandas"
    ]
    assert offenders == []
