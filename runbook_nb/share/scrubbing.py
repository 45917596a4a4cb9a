"""Taking out of one value of a notebook what must not be handed on, whatever its form.

Sharing layer. A text is looked through as it is; a page also in the pictures and the answers packed
into it, which are unpacked, looked through and packed again, so that what is shown and what is
carried stay one; data also by its names. What cannot be looked into is said.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from runbook_nb._deep import read_json
from runbook_nb._ids import digest
from runbook_nb._json import encode_deep
from runbook_nb.errors import RunbookError
from runbook_nb.record.forms import OUR_NAMES, OUR_WORDS
from runbook_nb.record.secrets import MIN_SECRET, PLACEHOLDER
from runbook_nb.record.told import told
from runbook_nb.render.embed import COMMENT, MARK, comment_of, read_embedded
from runbook_nb.runbook import Envelope, render_verdict_table
from runbook_nb.runbook.carried import hidden_by_name
from runbook_nb.share.learning import BESIDE_KEY, EXAMPLES, Learning, is_schema, named_leaves
from runbook_nb.share.machine import Machine
from runbook_nb.share.pictures import without_words
from runbook_nb.share.secretnames import given_away, is_open
from runbook_nb.share.shared import Findings
from runbook_nb.share.spellings import Spellings
from runbook_nb.share.travelling import filed_name, read_travelling, written_form

#: Rounds after which a text that still changes is hidden whole.
_ROUNDS: Final = 6
#: Bytes that a packed walk may unpack to, to be looked into.
_MAX_UNPACKED: Final = 64 * 1024 * 1024

_DATA_URI: Final = re.compile(
    r"data:(?P<kind>[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+)(?P<more>(?:;[A-Za-z0-9.=_-]+)*)"
    r";base64,(?P<data>[A-Za-z0-9+/]+={0,2})"
)
#: A comment of ours, of whatever version and however damaged.
OURS: Final = re.compile(rf"{re.escape(MARK)}[^>]*(?:-->|$)")
_PACKED: Final = re.compile(rf"{OURS.pattern}|{_DATA_URI.pattern}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]{16,}={0,2}\s*")

HIDDEN: Final = "hidden value"
FOLDER: Final = "folder or account of a machine"
NAMED: Final = "name of this account or machine, alone"


class Scrub:
    """Looks through values: first to learn what must not be seen, then to replace it.

    Parameters
    ----------
    learning : Learning
        What has been learnt and is learnt on the way.
    machine : Machine
    findings : Findings
    """

    def __init__(self, learning: Learning, machine: Machine, findings: Findings) -> None:
        self.learning = learning
        self.machine = machine
        self.findings = findings
        self.spellings = Spellings(learning.texts)
        self._only_learns = False
        #: Texts that were looked through and stay as they are, with how they were looked through.
        self._stay: set[tuple[str, str, bool, bool]] = set()
        #: Compared values that are hidden by their place alone: too short to be looked for.
        self.short: set[str] = set()
        #: Answers in which something was hidden, as they were and as they are.
        self.altered: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        #: Answers that were looked through: one output may carry its answer in two ways.
        self._answers: dict[str, Any] = {}

    @property
    def only_learns(self) -> bool:
        """Whether it only learns."""
        return self._only_learns

    @only_learns.setter
    def only_learns(self, value: bool) -> None:
        self._only_learns = value
        self.forget()

    def refresh(self) -> None:
        """Look for what has been learnt since, too."""
        before, self.spellings = self.spellings, self.spellings.with_more(self.learning.texts)
        if self.spellings is not before:
            self.forget()

    def forget(self) -> None:
        """Look through everything anew, also what has been met."""
        self._stay.clear()
        self._answers.clear()

    # -- text --------------------------------------------------------------------------------

    def text(
        self, text: str, place: str, *, form: str = "text", paths: bool = True, files: bool = False
    ) -> str:
        """Look through a text, and what is packed into it.

        Parameters
        ----------
        text, place : str
        form : {"text", "html", "code", "program"}
            In ``code``, which is Python, a bare name before a colon has a type behind it; in a
            ``program``, a script of a widget, names say nothing of what stands beside them.
        paths : bool
            Whether folders are replaced.
        files : bool
            Whether it is a traceback, of whose files only the names stay.
        """
        if MARK not in text and ";base64," not in text:
            return self._words(text, place, form, paths, files)
        if not self.only_learns and self.spellings:
            # One that begins in something packed would be taken for a part of it.
            text, times = self.spellings.hide(text)
            self.findings.add("replaced", HIDDEN, place, times)
        out: list[str] = []
        end = 0
        for found in _PACKED.finditer(text):
            out.append(self._words(text[end : found.start()], place, form, paths, files))
            out.append(
                self._comment(found[0], place)
                if found["data"] is None
                else self._uri(found, place, files)
            )
            end = found.end()
        made = "".join((*out, self._words(text[end:], place, form, paths, files)))
        # What was cut at something packed may go on behind it.
        if out and not self.only_learns and self.spellings:
            times = self.spellings.hide(_PACKED.sub("", made))[1]
            if times:
                what = "text with a hidden value cut in two by something packed"
                self.findings.add("removed", what, place, times)
                return PLACEHOLDER
        return made

    def _words(self, text: str, place: str, form: str, paths: bool, files: bool) -> str:
        key = (text, form, paths, files)
        if key in self._stay:
            return text
        made = self._looked_through(text, place, form, paths, files)
        if made == text:
            self._stay.add(key)
        return made

    def _looked_through(self, text: str, place: str, form: str, paths: bool, files: bool) -> str:
        if self.only_learns:
            if form != "program":
                self.learning.take_text(text, code=form == "code")
            return text
        for _ in range(_ROUNDS):
            made = self._once(text, place, form, paths, files)
            if made == text:
                return text
            text = made
        self.findings.add("replaced", HIDDEN, place)
        return PLACEHOLDER

    def _once(self, text: str, place: str, form: str, paths: bool, files: bool) -> str:
        text, times = self.spellings.hide(text) if self.spellings else (text, 0)
        self.findings.add("replaced", HIDDEN, place, times)
        if form != "program":
            text = self._named(text, place, code=form == "code")
        if paths:
            hide = self.machine.hide_files if files else self.machine.hide
            text, times = hide(text, html=form == "html")
            self.findings.add("replaced", FOLDER, place, times)
            if form != "program":
                text, times = self.machine.hide_names(text)
                self.findings.add("replaced", NAMED, place, times)
        return text

    def _named(self, text: str, place: str, *, code: bool) -> str:
        spans = sorted(given_away(text, self.learning.named, code=code))
        out: list[str] = []
        end = 0
        for start, stop in spans:
            if start >= end:
                out += (text[end:start], PLACEHOLDER)
                end = stop
        self.findings.add("replaced", "value beside the name of a secret", place, len(out) // 2)
        return "".join((*out, text[end:])) if out else text

    # -- data --------------------------------------------------------------------------------

    def data(self, value: Any, place: str, *, ours: bool = False, paths: bool = True) -> Any:
        """Look through JSON values; with ``ours`` the names of our written forms stay."""
        if self.only_learns:
            self.learning.take_names(value)
            self.learning.take(value)
            for name, one in named_leaves(value):
                if isinstance(one, str) and name not in _PROGRAMS:
                    self.text(one, place)
            return value
        try:
            return self._data(value, place, ours, paths)
        except RecursionError:
            self.findings.add("removed", "data nested too deeply to be looked through", place)
            return PLACEHOLDER

    def _data(self, value: Any, place: str, ours: bool, paths: bool) -> Any:
        if isinstance(value, str):
            return self.text(value, place, paths=paths)
        if isinstance(value, list | tuple):
            return [self._data(item, place, ours, paths) for item in value]
        if not isinstance(value, Mapping):
            # A number is told by its digits.
            if isinstance(value, int | float) and not isinstance(value, bool) and self.spellings:
                times = self.spellings.hide(str(value))[1]
                self.findings.add("replaced", HIDDEN, place, times)
                return PLACEHOLDER if times else value
            return value
        made: dict[str, Any] = {}
        key = value.get("key")
        by_key = isinstance(key, str) and self.learning.named(key)
        for name, item in value.items():
            shown = name if ours and name in OUR_NAMES else self.text(str(name), place, paths=paths)
            if ours and name in OUR_WORDS and isinstance(item, str):
                held = item
            elif name in _PROGRAMS and isinstance(item, str):
                held = self.text(item, place, form="program")
            elif self.learning.named(str(name)) or (by_key and name in BESIDE_KEY):
                held = self._under(item, str(name), place)
            else:
                held = self._data(item, place, ours, paths)
            made[_free(shown, made)] = held
        if value.get("model_name") == "PasswordModel" and isinstance(made.get("state"), dict):
            held = self._under(made["state"].get("value", ""), "password", place)
            made["state"] = {**made["state"], "value": held}
        return made

    def _under(self, value: Any, name: str, place: str) -> Any:
        """Hide what stands under the name of a secret; what only describes it stays."""
        if isinstance(value, Mapping):
            described = is_schema(value)
            return {
                self.text(str(key), place): self._under(item, name, place)
                if not described or key in EXAMPLES
                else self._data(item, place, False, True)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._under(item, name, place) for item in value]
        if (
            value is None
            or isinstance(value, bool)
            or (isinstance(value, str) and not is_open(value))
        ):
            return value if not isinstance(value, str) else self.text(value, place)
        self.findings.add("replaced", f"value under the name {name}", place)
        return PLACEHOLDER

    # -- what is packed ----------------------------------------------------------------------

    def _comment(self, comment: str, place: str) -> str:
        where = f"the answer in {place.partition(', ')[0]}"
        payload = read_embedded(comment) if re.fullmatch(COMMENT, comment) else None
        if payload is None:
            self.findings.add("removed", "machine-readable form that cannot be read", place)
            return ""
        made = self.answer(payload, where)
        if made is payload:
            return comment
        return "" if made is None else comment_of(lambda most: made, None)

    def _uri(self, found: re.Match[str], place: str, files: bool) -> str:
        kind = found["kind"].lower()
        try:
            data = base64.b64decode(found["data"], validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if not data:
            return self._words(found[0], place, "text", True, files)
        made = self._bytes(data, kind, place)
        if made is None:
            return "data:,"
        if made == data:
            return found[0]
        packed = base64.b64encode(made).decode("ascii")
        return f"data:{found['kind']}{found['more']};base64,{packed}"

    def _bytes(self, data: bytes, kind: str, place: str) -> bytes | None:
        """Look through packed content; None where it has to go."""
        if kind.startswith("text/") or kind in _PAGES or kind in _TEXTS or kind.endswith("json"):
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                text = None
            if text is not None:
                return self.text(text, place, form="html").encode("utf-8", "surrogatepass")
        if self.only_learns:
            return data
        if kind == "image/png":
            made = without_words(data)
            if made is not None:
                data, times = made
                self.findings.add("removed", "words beside the pixels of a picture", place, times)
        if self.spellings.are_in(data):
            self.findings.add("removed", f"{kind} that holds a hidden value", place)
            return None
        what = (
            "the pixels of a picture" if kind.startswith("image/") else f"{kind}, which is packed"
        )
        self.findings.add("not checked", what, place)
        return data

    # -- answers -----------------------------------------------------------------------------

    def answer(self, payload: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
        """Look through the machine-readable form of an answer; None where it has to go.

        What is hidden in it stays readable as an answer that hides something.
        """
        try:
            met = json.dumps(payload)
        except RecursionError:
            self.findings.add("removed", "data nested too deeply to be looked through", place)
            return None
        if met not in self._answers:
            self._answers[met] = self._answer(payload, place)
        made = self._answers[met]
        return payload if made == payload else made

    def _answer(self, payload: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
        made: Any = payload
        wire = payload.get("envelope")
        if isinstance(wire, Mapping) and isinstance(wire.get("dossier"), Mapping):
            try:
                dossier, gone = hidden_by_name(wire["dossier"], self.learning.named)
            except _DAMAGED:
                # What it compared stands in it under no name, so that nobody could look for it.
                if not self.only_learns:
                    what = "machine-readable form whose evidence cannot be read"
                    self.findings.add("removed", what, place)
                return payload if self.only_learns else None
            if self.only_learns:
                for value in gone:
                    self.learning.tell(value)
            elif gone:
                what = "value or subject that a secret's name means"
                self.findings.add("replaced", what, place, len(gone))
                short = (text for value in gone for text in told(value))
                self.short.update(text for text in short if len(text) < MIN_SECRET)
                made = {**payload, "envelope": {**wire, "dossier": dossier}}
        made = self.data(made, place, ours=True)
        if self.only_learns or made == payload:
            return payload
        if _reads(payload) and not _reads(made):
            self.findings.add("removed", "machine-readable form that hiding made unreadable", place)
            return None
        made = _with_its_table(payload, made)
        self.altered.append((payload, made))
        return dict(made)

    def carried(self, entry: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        """Look through what the metadata of an output carries; None where it has to go."""
        read = read_travelling(entry)
        if read.payload is None:
            self.findings.add("removed", "machine-readable form that cannot be read", place)
            return None
        payload = self.answer(read.payload, f"the answer in {place}")
        filed = {
            ref: made
            for ref, one in entry.get("filed", {}).items()
            if ref in read.filed
            and (made := self._filed(one, f"{filed_name(one)} filed in {place}")) is not None
        }
        if payload is None:
            return None
        for ref in () if self.only_learns else sorted(read.damaged):
            what = "what was filed, and is not what its digest is of"
            self.findings.add(
                "removed", what, f"{filed_name(entry['filed'][ref])} filed in {place}"
            )
        missing = entry.get("not_filed")
        kept = {
            str(name): self.text(str(why), place)
            for name, why in (missing.items() if isinstance(missing, Mapping) else ())
        }
        known = {"format", "payload", "sha-256", "filed", "not_filed"}
        same = payload is read.payload and filed == entry.get("filed", {}) and known >= entry.keys()
        if same and kept == entry.get("not_filed", {}):
            return dict(entry)
        return written_form(payload, filed, kept)

    def _filed(self, written: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        ticket = dict(written["ticket"])
        dated = not ticket.keys().isdisjoint(_TIMING)
        for name in _TIMING:
            ticket.pop(name, None)
        data: str = written["data"]
        made = self._unpacked(data, place) if written.get("packed") else self._json(data, place)
        if self.only_learns:
            return dict(written)
        self.findings.add("removed", "moment and call of filing", place, int(dated))
        if made is None:
            return None
        if not written.get("packed") and self._shows_short(made):
            what = "what was filed, which shows a hidden value too short to be looked for"
            self.findings.add("removed", what, place)
            return None
        if made != data:
            # The ticket's digest is that of what was filed, and this is no longer it.
            ticket.pop("digest", None)
            ticket["bytes"] = len(made.encode("utf-8", "surrogatepass"))
        kept = {"ticket": ticket, "sha-256": digest(made).removeprefix("sha-256:"), "data": made}
        return {**kept, "packed": True} if written.get("packed") else kept

    def _shows_short(self, text: str) -> bool:
        return any(
            re.search(rf"(?<![A-Za-z0-9_]){re.escape(short)}(?![A-Za-z0-9_])", text)
            for short in self.short
        )

    def _json(self, data: str, place: str) -> str:
        try:
            value = read_json(data)
            made = self.data(value, place, ours=True)
            return data if made == value else encode_deep(made)
        except (ValueError, RecursionError, RunbookError):
            return self.text(data, place)

    def _unpacked(self, data: str, place: str) -> str | None:
        try:
            packer = zlib.decompressobj()
            text = packer.decompress(base64.b64decode(data), _MAX_UNPACKED).decode("utf-8")
            whole = packer.eof
        except (ValueError, zlib.error):
            whole = False
        if not whole:
            if self.spellings.are_in(base64.b64decode(data)):
                self.findings.add("removed", "filed walk that holds a hidden value", place)
                return None
            self.findings.add("not checked", "filed walk that cannot be unpacked here", place)
            return data
        # Its columns belong together: with one value replaced they would no longer be read.
        apart = Scrub(self.learning, self.machine, Findings())
        apart.spellings, apart.only_learns = self.spellings, self.only_learns
        if apart._json(text, place) == text and not self._shows_short(text):
            return data
        self.findings.add("removed", "filed walk that holds a hidden value or a folder", place)
        return None

    # -- outputs by kind ---------------------------------------------------------------------

    def bundle(self, data: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Look through what an output or an attachment holds, each kind by its own form."""
        made: dict[str, Any] = {}
        for kind, content in data.items():
            if self.spellings and self.spellings.hide(kind)[1]:
                self.findings.add("removed", "content of a kind that names a hidden value", place)
                continue
            held = self._of_kind(kind.lower(), content, f"{place}, {kind}")
            if held is not None:
                made[kind] = held
        return made

    def _of_kind(self, kind: str, content: Any, place: str) -> Any:
        if kind == "application/json" or kind.endswith("+json") or not isinstance(content, str):
            return self.data(content, place)
        if kind in _PAGES:
            return self.text(content, place, form="html")
        if kind.startswith("text/") or kind in _TEXTS:
            return self.text(content, place)
        if not _BASE64.fullmatch(content):
            return self.text(content, place)
        try:
            packed = base64.b64decode(content)
        except (binascii.Error, ValueError):
            return self.text(content, place)
        made = self._bytes(packed, kind, place)
        if made is None or made == packed:
            return None if made is None else content
        return base64.b64encode(made).decode("ascii")


#: What reading a dossier raises that is none.
_DAMAGED: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError, RunbookError)
#: Kinds that are markup, and kinds that are text though their name does not say so.
_PAGES: Final = frozenset({"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml"})
_TEXTS: Final = frozenset({"application/javascript", "application/xml", "application/yaml"})
#: Where widgets keep their scripts and styles.
_PROGRAMS: Final = frozenset({"_esm", "_css"})
#: Parts of a ticket that tell of a run and not of what was filed.
_TIMING: Final = ("createdAt", "expiresAt", "origin", "parentRefs")


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Give a name that is not taken: several may have been hidden in one mapping."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _with_its_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write the table of an answer anew from its rows, where it was written from them."""
    try:
        old, new = before["envelope"]["result"], after["envelope"]["result"]
        for total in (None, old["rows_total"]):
            if render_verdict_table(old["verdicts"], total) == old["table"]:
                table = render_verdict_table(new["verdicts"], total)
                result = {**new, "table": table}
                return {**after, "envelope": {**after["envelope"], "result": result}}
    except _DAMAGED:
        pass
    return after


def _reads(payload: Any) -> bool:
    try:
        Envelope.from_dict(payload["envelope"])
    except Exception:  # whatever it is, it is no answer
        return False
    return True
