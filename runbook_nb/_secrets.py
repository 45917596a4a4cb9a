"""What an input schema asks for as a secret, however deep that lies in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from runbook_nb._arguments import resolved

#: What holds values, and what holds schemas for nobody but who refers to them.
_DATA: Final = frozenset({"enum", "const", "default", "examples"})
_ASIDE: Final = frozenset({"$defs", "definitions"})
#: Where what a value may be is listed, or told by another schema.
_TOLD_ELSEWHERE: Final = frozenset({"enum", "const", "$ref", "anyOf", "oneOf", "allOf"})


def secret_names(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what a schema asks for as a secret, however deep: ``writeOnly``, or a ``password``.

    What has no name of its own, an item of a list for one, goes by the name it stands under; what
    stands under none goes by the empty name.

    Examples
    --------
    >>> secret_names({"type": "object", "properties": {"days": {"type": "integer"},
    ...     "token": {"type": "string", "writeOnly": True},
    ...     "conn": {"properties": {"pins": {"items": {"format": "password"}}}}}})
    ('token', 'pins')
    """
    parts = _named_parts(schema, schema)
    return tuple(dict.fromkeys(name for name, part in parts if _is_secret(part)))


def holds_secret(
    root: Mapping[str, Any], schema: Any, named: Callable[[str], bool] = lambda name: False
) -> bool:
    """Say whether an input is a secret, or a part of it is one, however deep that lies.

    Parameters
    ----------
    root : mapping
        The schema that references point into.
    schema : object
        The input's own.
    named : callable
        Says whether a name is that of a secret.

    Examples
    --------
    >>> auth = {"type": "object", "properties": {"token": {"type": "string"}}}
    >>> holds_secret({}, auth), holds_secret({}, auth, named="token".__eq__)
    (False, True)
    """
    parts = _named_parts(root, schema)
    return any(_is_secret(part) or (name != "" and named(name)) for name, part in parts)


def takes_any_name(root: Mapping[str, Any], schema: Any) -> bool:
    """Say whether an input, or a part of it, may hold names that the schema does not tell.

    Examples
    --------
    >>> closed = {"type": "object", "additionalProperties": False}
    >>> takes_any_name({}, {"type": "object"}), takes_any_name({}, closed)
    (True, False)
    """
    return any(_is_open(part) for _, part in _named_parts(root, schema))


def _is_open(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or not _TOLD_ELSEWHERE.isdisjoint(schema):
        return schema is True
    words = schema.get("type", ("object", "array"))
    kinds = {words} if isinstance(words, str) else set(words)
    if "object" in kinds and schema.get("additionalProperties", True) is not False:
        return True
    return "array" in kinds and "items" not in schema


def _is_secret(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (
        schema.get("writeOnly") is True or schema.get("format") == "password"
    )


def _named_parts(root: Mapping[str, Any], schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every schema in a schema, with the nearest name a value of it stands under."""
    parts: list[tuple[str, Any]] = [("", schema)]
    followed = set[tuple[str, str]]()
    for name, part in parts:  # grows as it is gone through
        yield name, part
        if isinstance(part, list | tuple):
            parts.extend((name, one) for one in part)
        if not isinstance(part, Mapping):
            continue
        for word, value in part.items():
            if word == "properties" and isinstance(value, Mapping):
                parts.extend((str(own), one) for own, one in value.items())
            elif word == "$ref" and isinstance(value, str) and value.startswith("#"):
                if (name, value) not in followed:
                    followed.add((name, value))
                    parts.append((name, resolved(root, {word: value})))
            elif word not in _DATA and word not in _ASIDE:
                parts.append((name, value))
