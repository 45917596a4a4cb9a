"""Reading a bundle of certificates: one row per block, the broken ones included.

Examples layer. It says what stands in the bundle and judges nothing. A parser may raise anything on
hostile bytes; here that becomes the row's ``problem``.
"""

from __future__ import annotations

import base64
import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.errors import DefinitionError, LoadError

if TYPE_CHECKING:
    from cryptography import x509

#: Hexadecimal digits of a fingerprint that tell two certificates of one name apart.
SHORT: Final = 8

# Text between the blocks is commentary. A block that never ends runs up to the next one.
_BLOCK: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]{1,64})-----(.*?)(-----END \1-----|(?=-----BEGIN )|\Z)", re.DOTALL
)


def certificate_rows(as_of: date | str, bundle: str | Path | None = None) -> list[dict[str, Any]]:
    """Read every certificate of a bundle, one row each, in the bundle's order.

    Nothing is left out: a block that cannot be read is a row whose ``problem`` says why.

    Parameters
    ----------
    as_of : date or str
        The date that ``days_left`` counts from; midnight UTC.
    bundle : str or Path, optional
        A PEM file; the one of the installed certifi by default.

    Returns
    -------
    list of dict
        ``certificate`` (a name, unique in the list), ``fingerprint`` (SHA-256, the identity),
        ``expires``, ``days_left``, ``days_since_start``, ``key_type``, ``key_bits``, ``curve``,
        ``signature_hash``, ``is_root``, ``problem``. What could not be read is
        None; where all was, ``problem`` is empty.

    Raises
    ------
    DefinitionError
        The date is none.
    LoadError
        The bundle cannot be opened, or a package is missing.

    Examples
    --------
    >>> rows = certificate_rows("2026-11-29")
    >>> min(row["days_left"] for row in rows) > 0
    True
    """
    day = read_date(as_of)
    content = _read(certifi_bundle() if bundle is None else Path(bundle))
    rows = [_row(block, day) for block in _blocks(content)]
    _tell_apart(rows)
    return [{key: row[key] for key in row if not key.startswith("_")} for row in rows]


def read_date(value: date | str) -> date:
    """Read a date, given as one or as ISO text.

    Raises
    ------
    DefinitionError
        It is no date of the calendar, or written another way.

    Examples
    --------
    >>> read_date("2026-11-29")
    datetime.date(2026, 11, 29)
    """
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    try:
        day = date.fromisoformat(value)
    except (TypeError, ValueError):
        day = None
    if day is None or day.isoformat() != value:
        raise DefinitionError(
            f"{value!r} is not a date", code="bad_date", where="as_of", fix="write it as 2026-11-29"
        )
    return day


def certifi_bundle() -> Path:
    """Name the file of the installed certifi."""
    return Path(_installed("certifi").where())


def source_name(bundle: str | Path | None) -> str:
    """Name a bundle and its version, as the ledger does."""
    if bundle is None:
        return f"certifi {_installed('certifi').__version__}"
    return f"bundle {Path(bundle).name}"


def _installed(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise LoadError(
            f"reading certificates needs the package {name!r}, which is not installed",
            code="missing_package",
            where=name,
            fix="run: pip install certifi cryptography, "
            "or: conda install -c conda-forge certifi cryptography",
        ) from error


def _read(bundle: Path) -> bytes:
    try:
        return bundle.read_bytes()
    except OSError as error:
        raise LoadError(
            f"the certificate bundle {bundle.name!r} cannot be opened: {error.strerror}",
            where=str(bundle),
            fix="give the path of a PEM file",
        ) from error


def _blocks(content: bytes) -> Iterator[dict[str, Any]]:
    """Find the blocks, broken ones included."""
    line, seen = 1, 0
    for number, found in enumerate(_BLOCK.finditer(content), 1):
        line += content.count(b"\n", seen, found.start())
        seen = found.start()
        yield {
            "kind": found[1].decode(),
            "body": b"".join(found[2].split()),
            "ended": bool(found[3]),
            "place": f"block {number}, line {line}",
        }


def _row(block: Mapping[str, Any], day: date) -> dict[str, Any]:
    """Read one block; what goes wrong becomes its ``problem``."""
    row: dict[str, Any] = {
        "certificate": "",
        "fingerprint": None,
        "expires": None,
        "days_left": None,
        "days_since_start": None,
        "key_type": None,
        "key_bits": None,
        "curve": None,
        "signature_hash": None,
        "is_root": None,
        "problem": "",
        "_place": block["place"],
    }
    if block["kind"] != "CERTIFICATE":
        return row | {"problem": f"the block holds a {block['kind'].lower()}, not a certificate"}
    if not block["ended"]:
        return row | {"problem": "the block does not end: its END line is missing"}
    try:
        der = base64.b64decode(block["body"], validate=True)
    except ValueError:
        return row | {"problem": "the block holds something other than base64"}
    row["fingerprint"] = hashlib.sha256(der).hexdigest()
    x509 = _installed("cryptography.x509")
    try:
        with warnings.catch_warnings():
            # Old roots break rules that came later (a serial number of zero, for one), and the
            # parser says so. It reads them all the same, and what it reads is what is judged.
            warnings.simplefilter("ignore")
            certificate = x509.load_der_x509_certificate(der)
    except Exception as error:  # a parser may raise anything on hostile input
        return row | {"problem": f"the block holds no certificate: {_first_line(error)}"}
    parts: tuple[Callable[..., dict[str, Any]], ...] = (_name, _lifetime, _key, _signature, _role)
    for part in parts:
        try:
            row.update(part(certificate, day))
        except Exception as error:
            what = part.__name__.removeprefix("_")
            row["problem"] = row["problem"] or f"its {what} cannot be read: {_first_line(error)}"
    return row


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _name(certificate: x509.Certificate, day: date) -> dict[str, Any]:
    from cryptography.x509.oid import NameOID

    common = _text_of(certificate, NameOID.COMMON_NAME)
    if common:
        return {"certificate": common}
    # An organisation may have many roots, so its name alone says too little.
    return {"_organisation": _text_of(certificate, NameOID.ORGANIZATION_NAME)}


def _text_of(certificate: x509.Certificate, oid: Any) -> str:
    for attribute in certificate.subject.get_attributes_for_oid(oid):
        text = str(attribute.value).strip()
        if any(sign.isalnum() for sign in text):
            return text
    return ""


def _lifetime(certificate: x509.Certificate, day: date) -> dict[str, Any]:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return {
        "expires": end.date().isoformat(),
        "days_left": (end - midnight).days,
        "days_since_start": (midnight - start).days,
    }


def _key(certificate: x509.Certificate, day: date) -> dict[str, Any]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return {"key_type": "RSA", "key_bits": key.key_size}
    if isinstance(key, ec.EllipticCurvePublicKey):
        return {"key_type": "EC", "key_bits": key.key_size, "curve": key.curve.name}
    return {"key_type": type(key).__name__.removeprefix("_").removesuffix("PublicKey")}


def _signature(certificate: x509.Certificate, day: date) -> dict[str, Any]:
    algorithm = certificate.signature_hash_algorithm
    return {"signature_hash": "none" if algorithm is None else algorithm.name}


def _role(certificate: x509.Certificate, day: date) -> dict[str, Any]:
    from cryptography import x509

    try:
        may_issue = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        may_issue = True  # the oldest roots come from before there were extensions
    return {"is_root": may_issue and certificate.subject == certificate.issuer}


def _tell_apart(rows: list[dict[str, Any]]) -> None:
    """See that every row has a name of its own: by its fingerprint, at last by its place."""
    times = Counter(row["certificate"] for row in rows)
    taken: set[str] = set()
    for row in rows:
        name = row["certificate"] or row.get("_organisation") or ""
        if not name and row["problem"]:
            name = f"unreadable ({row['_place']})"
        elif not row["certificate"] or times[name] > 1:
            name = f"{name or 'no name'} ({row['fingerprint'][:SHORT]})"
        if name in taken:  # one certificate twice, or a name made up to look like another
            name = f"{name} ({row['_place']})"
        taken.add(name)
        row["certificate"] = name
