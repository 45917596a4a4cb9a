"""What a notebook gives away of the secrets in it: their names, and their texts.

Sharing layer. A text that stands under the name of a secret is hidden wherever it reappears, so it
is learnt first, from sources, data, texts and widgets alike, before anything is replaced. Nothing
in the notebook is run; sources are read as syntax.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import unescape
from typing import Any, Final
from urllib.parse import unquote

from runbook_nb._secrets import secret_names
from runbook_nb.record.redact import Redactor
from runbook_nb.record.secrets import MIN_SECRET
from runbook_nb.record.told import told
from runbook_nb.share.secretnames import NOUNS, given_away, is_open, looks_secret

#: A line of a secret of several lines is looked for by itself from this length on.
MIN_LINE: Final = 16

#: Words of a JSON Schema, which describes a secret and holds none but under `EXAMPLES`.
_SCHEMA: Final = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "writeOnly", "description"})
EXAMPLES: Final = ("default", "const", "examples", "enum")
#: What stands beside the ``key`` of a condition, in evidence.
BESIDE_KEY: Final = ("threshold", "actual", "actualSummary")

#: What only wraps a literal.
_WRAPS: Final = frozenset({"SecretStr", "SecretBytes", "str", "bytes", "bytearray"})
_SECRET_TYPES: Final = frozenset({"SecretStr", "SecretBytes"})
_DIGITS: Final = re.compile(r"\d.*\d")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
#: Lines that are no Python: magics, and commands of the shell.
_CELL_MAGIC: Final = re.compile(r"\s*%%(\w+)")
_PYTHON_MAGICS: Final = frozenset({"time", "timeit", "capture", "prun", "python", "python3"})
_MAGIC: Final = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)


class Learning:
    """Collects the names and the texts of secrets.

    Parameters
    ----------
    redactor : Redactor
        The policy that was given; a name it hides is one.
    guess : bool
        Whether names under which secrets usually stand are such names too.

    Attributes
    ----------
    texts : set of str
        Of at least six characters.
    short : set of str
        Of fewer: too short to be looked for.
    names : set of str
        Names that the notebook itself declares to be those of secrets.
    met : set of str
        Names the policy hides, under which something stood.

    Examples
    --------
    >>> learning = Learning(Redactor(None))
    >>> learning.take_code("connect(user='ann', password='hunter-2')")
    >>> learning.texts
    {'hunter-2'}
    """

    def __init__(self, redactor: Redactor, *, guess: bool = True) -> None:
        self._redactor = redactor
        self._guess = guess
        self.names: set[str] = set()
        self.texts: set[str] = set()
        self.short: set[str] = set()
        self.met: set[str] = set()

    def named(self, name: str) -> bool:
        """Say whether what stands under a name is hidden."""
        if self._redactor.names(name):
            self.met.add(name)
            return True
        return name in self.names or (self._guess and looks_secret(name))

    def tell(self, value: Any) -> None:
        """Learn a value that is a secret."""
        for text in told(value):
            if not text or not is_open(text) or self._is_name(text):
                continue
            if len(text) < MIN_SECRET:
                self.short.add(text)
                continue
            self.texts.add(text)
            lines = [line.strip() for line in text.splitlines()]
            if len(lines) > 1:
                self.texts.update(line for line in lines if len(line) >= MIN_LINE)

    def _is_name(self, text: str) -> bool:
        """Say whether a text only names a secret: ``token="API_TOKEN"``."""
        return text.lower() in NOUNS or bool(_VARIABLE.fullmatch(text) and looks_secret(text))

    # -- data --------------------------------------------------------------------------------

    def take_names(self, value: Any) -> None:
        """Learn the names that schemas, forms and carried policies declare in some data."""
        for part in _mappings(value):
            if isinstance(part.get("properties"), Mapping):
                with suppress(Exception):  # a schema of anybody
                    self.names.update(secret_names(part))
            if part.get("kind") == "secret" and isinstance(part.get("name"), str):
                self.names.add(part["name"])
            hidden = part.get("hidden")
            if isinstance(hidden, list) and "digest" in part:
                self.names.update(name for name in hidden if isinstance(name, str))

    def take(self, value: Any) -> None:
        """Learn what stands under the name of a secret in some data."""
        for part in _mappings(value):
            for name, held in part.items():
                if isinstance(name, str) and self.named(name):
                    for one in leaves_under(held):
                        self.tell(one)
            if isinstance(part.get("key"), str) and self.named(part["key"]):
                for one in leaves([part.get(name) for name in BESIDE_KEY]):
                    self.tell(one)
            if part.get("model_name") == "PasswordModel" and isinstance(part.get("state"), Mapping):
                self.tell(part["state"].get("value"))

    def take_text(self, text: str, *, code: bool = False) -> None:
        """Learn what a text shows under the name of a secret."""
        for start, end in given_away(text, self.named, code=code):
            value = text[start:end]
            # What stands unquoted in a line of a traceback may be a variable.
            if text[start - 1] != "=" or not value.isidentifier() or _DIGITS.search(value):
                for meant in _meant(value):
                    self.tell(meant)

    # -- sources -----------------------------------------------------------------------------

    def take_code_names(self, source: str) -> None:
        """Learn the names that Python code declares to be those of secrets."""
        for node in _nodes(source):
            if isinstance(node, ast.Dict):
                self.take_names(_literal(node))
            elif isinstance(node, ast.arg) and _is_secret_type(node.annotation):
                self.names.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and _is_secret_type(node.annotation):
                self.names.update(_names_of(node.target))
            elif isinstance(node, ast.Call) and _called(node) == "Redact":
                self._policy({word.arg: word.value for word in node.keywords if word.arg})
            elif (
                isinstance(node, ast.keyword)
                and node.arg == "redact"
                and isinstance(node.value, ast.Dict)
            ):
                keys = [_literal(key) for key in node.value.keys if key is not None]
                self._policy(dict(zip(keys, node.value.values, strict=False)))

    def _policy(self, parts: Mapping[Any, ast.expr]) -> None:
        """Learn from a policy that is written out."""
        for name in _texts(parts.get("keys")):
            self.names.add(name)
        for text in _texts(parts.get("values")):
            if is_open(text):
                self.texts.add(text)  # it was said to be one, however short

    def take_code(self, source: str) -> None:
        """Learn the literals that stand under the name of a secret in Python code."""
        for node in _nodes(source):
            for name, value in _named_values(node):
                if value is not None and self.named(name):
                    for text in _literals(value):
                        self.tell(text)


def _meant(value: str) -> set[str]:
    """Give what a text may stand for, as it is and read as one writer or another wrote it."""
    meant = {value}
    if "&" in value:
        meant.add(unescape(value))
    if "%" in value:
        meant.add(unquote(value))
    if "\\" in value:
        for quote in ('"', "'"):
            with suppress(ValueError, SyntaxError, MemoryError):
                meant.add(str(ast.literal_eval(f"{quote}{value}{quote}")))
        with suppress(ValueError):
            meant.add(str(json.loads(f'"{value}"')))
    return meant


# -- walking data ----------------------------------------------------------------------------


def is_schema(value: Any) -> bool:
    """Say whether some data describes a value, where another holds one."""
    return isinstance(value, Mapping) and not _SCHEMA.isdisjoint(value)


def leaves_under(value: Any) -> Iterator[Any]:
    """Yield the values that stand under the name of a secret."""
    if is_schema(value):
        value = [value[name] for name in EXAMPLES if name in value]
    yield from leaves(value)


def _mappings(value: Any) -> Iterator[Mapping[Any, Any]]:
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, Mapping):
            yield part
            left.extend(part.values())
        elif isinstance(part, list | tuple):
            left.extend(part)


def leaves(value: Any) -> Iterator[Any]:
    """Yield every value in some data that is no container."""
    return (leaf for _, leaf in named_leaves(value))


def named_leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every value in some data that is no container, and the name it stands under."""
    left = [("", value)]
    while left:
        name, part = left.pop()
        if isinstance(part, Mapping):
            left.extend((str(inner), held) for inner, held in part.items())
        elif isinstance(part, list | tuple):
            left.extend((name, held) for held in part)
        else:
            yield name, part


# -- walking syntax --------------------------------------------------------------------------


def _nodes(source: str) -> Iterator[ast.AST]:
    try:
        tree = ast.parse(_MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from ast.walk(tree)


def is_code(source: str) -> bool:
    r"""Say whether a source can be read as Python.

    Examples
    --------
    >>> is_code("%time f(1)\nx = 2"), is_code("SELECT 1 FROM t")
    (True, False)
    """
    magic = _CELL_MAGIC.match(source)
    if magic is not None and magic[1] not in _PYTHON_MAGICS:
        return False
    try:
        ast.parse(_MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name in a node with what stands under it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        yield from _paired(node.target, node.value)
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            for name in _texts(key):
                yield name, value
    elif isinstance(node, ast.Compare):
        for other in node.comparators:
            yield from _paired(node.left, other)
            yield from _paired(other, node.left)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        behind = positional[len(positional) - len(node.defaults) :]
        for arg, value in zip(behind, node.defaults, strict=True):
            yield arg.arg, value
        for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            yield arg.arg, default


def _paired(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _paired(one, part)
    else:
        for name in _names_of(target):
            yield name, value


def _names_of(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Subscript):
        yield from _texts(target.slice)


def _literals(value: ast.expr) -> Iterator[Any]:
    """Yield the literals a value is made of, where it is made of literals."""
    if isinstance(value, ast.Constant):
        yield value.value
    elif isinstance(value, ast.Dict):
        names = {text for key in value.keys for text in _texts(key)}
        for key, part in zip(value.keys, value.values, strict=True):
            if _SCHEMA.isdisjoint(names) or not set(EXAMPLES).isdisjoint(_texts(key)):
                yield from _literals(part)
    elif isinstance(value, ast.BinOp | ast.UnaryOp):
        found = _literal(value)
        yield _sum(value) if found is None else found
    else:
        for part in _parts(value):
            yield from _literals(part)


def _parts(value: ast.expr) -> Sequence[ast.expr]:
    """Give the values of which one, or each, is what stands there."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return value.elts
    if isinstance(value, ast.BoolOp):
        return value.values
    if isinstance(value, ast.IfExp):
        return (value.body, value.orelse)
    if isinstance(value, ast.Call) and _called(value) in _WRAPS:
        return value.args
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return (value.func.value,)  # "…".encode()
    return ()


def _sum(value: ast.expr) -> str | None:
    """Give texts that are added up as one text; None where it is no such thing."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = _sum(value.left), _sum(value.right)
        return None if left is None or right is None else left + right
    return None


def _literal(node: ast.AST | None) -> Any:
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _texts(node: ast.AST | None) -> Iterable[str]:
    value = _literal(node)
    found = value if isinstance(value, list | tuple | set) else (value,)
    return [text for text in found if isinstance(text, str) and text]


def _called(node: ast.Call) -> str:
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_secret_type(annotation: ast.expr | None) -> bool:
    """Say whether an annotation makes a secret: ``SecretStr``, or ``writeOnly`` in its schema."""
    if annotation is None:
        return False
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name | ast.Attribute):
            if (node.id if isinstance(node, ast.Name) else node.attr) in _SECRET_TYPES:
                return True
        elif isinstance(node, ast.Dict):
            extra = _literal(node)
            if isinstance(extra, dict) and extra.get("writeOnly") is True:
                return True
    return False
