"""Reading a bundle of certificates: one row per block, the broken ones included.

Examples layer. It says what stands in the bundle and judges nothing. A parser may raise anything on
hostile bytes; here that becomes the row's ``problem``.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.errors import LoadError
from runbook_nb.examples.procedure import read_date, read_moment

if TYPE_CHECKING:
    from cryptography import x509

#: Hexadecimal digits of a fingerprint that tell two certificates of one name apart.
SHORT: Final = 8

#: Reads a part of a certificate, at the day or moment that ages count from.
Part = Callable[[Any, Any], dict[str, Any]]

_FACTS: Final = (
    *("expires", "days_left", "days_since_start"),
    *("key_type", "key_bits", "curve", "signature_hash", "is_root"),
)
_TERM_FACTS: Final = (
    *("issued", "expires", "hours_since_start", "hours_left", "days_left", "lifetime_days"),
    *("is_client", "is_server", "may_issue", "is_root"),
)

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
    parts = (_name, _lifetime, _key, _signature, _role)
    return _told_apart([_row(block, day, _FACTS, parts) for block in _blocks(content)])


def lifetime_rows(as_of: date | str, bundle: str | Path) -> list[dict[str, Any]]:
    """Read every certificate of a bundle for how long it lives and what it is for.

    Parameters
    ----------
    as_of : date, datetime or str
        The moment that ``hours_left`` and ``days_left`` count from; of a date its midnight UTC.
    bundle : str or Path
        A PEM file.

    Returns
    -------
    list of dict
        ``certificate`` (a name, unique in the list), ``fingerprint``, ``issued`` and ``expires``
        (dates), ``hours_since_start``, ``hours_left``, ``days_left``, ``lifetime_days`` (days
        begun, the last second included), ``is_client`` and ``is_server`` (a certificate that names
        no use has both), ``may_issue``, ``is_root``, ``problem``. What could not be read is None.

    Raises
    ------
    DefinitionError
        The date is none.
    LoadError
        The bundle cannot be opened, or a package is missing.
    """
    moment = read_moment(as_of)
    content = _read(Path(bundle))
    parts = (_name, _term, _purpose)
    return _told_apart([_row(block, moment, _TERM_FACTS, parts) for block in _blocks(content)])


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


def _row(
    block: Mapping[str, Any], day: Any, facts: Iterable[str], parts: Iterable[Part]
) -> dict[str, Any]:
    """Read one block; what goes wrong becomes its ``problem``."""
    row: dict[str, Any] = {
        "certificate": "",
        "fingerprint": None,
        **dict.fromkeys(facts),
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


def _term(certificate: x509.Certificate, moment: datetime) -> dict[str, Any]:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    left = end - moment
    # The last second belongs to the time a certificate is valid, and a day begun counts as one.
    lifetime = end - start + timedelta(seconds=1)
    return {
        "issued": start.date(),
        "expires": end.date(),
        "hours_left": math.floor(left / timedelta(hours=1) * 100) / 100,
        "days_left": left.days,
        "lifetime_days": -(-lifetime // timedelta(days=1)),
        "hours_since_start": math.floor((moment - start) / timedelta(hours=1) * 100) / 100,
    }


def _purpose(certificate: x509.Certificate, moment: datetime) -> dict[str, Any]:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID as Use

    self_issued = certificate.subject == certificate.issuer
    extensions = certificate.extensions
    try:
        may_issue = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:  # before there were extensions, a root was known by its name
        may_issue = self_issued and certificate.version is x509.Version.v1
    try:
        uses = set(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        uses = {Use.ANY_EXTENDED_KEY_USAGE}
    anything = Use.ANY_EXTENDED_KEY_USAGE in uses
    return {
        "is_client": not may_issue and (anything or Use.CLIENT_AUTH in uses),
        "is_server": not may_issue and (anything or Use.SERVER_AUTH in uses),
        "may_issue": may_issue,
        "is_root": may_issue and self_issued,
    }


def _told_apart(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """See that every row has a name of its own, and drop what was only needed for that.

    Told apart by the fingerprint, at last by the place in the bundle.
    """
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
    return [{key: row[key] for key in row if not key.startswith("_")} for row in rows]
