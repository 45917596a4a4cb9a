"""Text that a stage gives piece by piece, told to whoever listens while it comes.

Chart layer. Tokens go to the listener as they come, and only their number and the whole text go
on the record, when the stage ends or fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class StreamEvent(NamedTuple):
    """One thing that happened to a stream.

    Attributes
    ----------
    kind : {"start", "token", "end"}
        Each stream of one execution has one start and one end.
    stream : str
        The id of the stream.
    text : str
        The token; at the end, the whole text; at the start, nothing.
    complete : bool
        False in the end of a stream whose stage failed, paused or was stopped.
    """

    kind: Literal["start", "token", "end"]
    stream: str
    text: str = ""
    complete: bool = True


class Stream:
    """The stream of one execution of a streaming stage."""

    __slots__ = ("listener", "name", "tokens")

    def __init__(self, name: str, listener: Callable[[StreamEvent], Any] | None) -> None:
        self.name = name
        self.listener = listener
        self.tokens: list[str] = []
        self._tell(StreamEvent("start", name))

    def token(self, text: str) -> None:
        """Take one piece of text in."""
        self.tokens.append(text)
        self._tell(StreamEvent("token", self.name, text))

    def end(self, complete: bool) -> dict[str, Any]:
        """Close the stream; give what goes on the record."""
        text = "".join(self.tokens)
        self._tell(StreamEvent("end", self.name, text, complete))
        return {
            "stream": self.name,
            "tokens": len(self.tokens),
            "text": text,
            "complete": complete,
        }

    def _tell(self, event: StreamEvent) -> None:
        tell(self.listener, event)


def tell(listener: Callable[[StreamEvent], Any] | None, event: StreamEvent) -> None:
    """Tell whoever listens; a listener never affects what it listens to."""
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        from logging import getLogger

        log = getLogger("runbook_nb")
        log.warning("a listener of stream %r failed", event.stream, exc_info=True)
