"""Certificates made for one test each, and bundles of them."""

import datetime as dt
import itertools

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

_SERIAL = itertools.count(1)


def name_of(common, organisation):
    parts = [(NameOID.COMMON_NAME, common), (NameOID.ORGANIZATION_NAME, organisation)]
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts if text is not None])


@pytest.fixture(scope="session")
def keys():
    """Keys are slow to make, so the tests share them."""
    return {
        "rsa-2048": rsa.generate_private_key(65537, 2048),
        "rsa-1024": rsa.generate_private_key(65537, 1024),  # noqa: S505 - to be found weak
        "p-256": ec.generate_private_key(ec.SECP256R1()),
        "p-521": ec.generate_private_key(ec.SECP521R1()),
        "p-192": ec.generate_private_key(ec.SECP224R1()),
        "k-256": ec.generate_private_key(ec.SECP256K1()),
    }


@pytest.fixture
def made(keys):
    """Make one certificate and give its PEM block."""

    def make(
        common="Root",
        organisation=None,
        *,
        key="p-256",
        end="2040-01-01",
        start="2010-01-01",
        issuer=None,
        may_issue=True,
        hashed=None,
    ):
        subject = name_of(common, organisation)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if issuer is None else name_of(issuer, None))
            .public_key(keys[key].public_key())
            .serial_number(next(_SERIAL))
            .not_valid_before(dt.datetime.fromisoformat(start))
            .not_valid_after(dt.datetime.fromisoformat(end))
        )
        if may_issue is not None:
            limits = x509.BasicConstraints(ca=may_issue, path_length=None)
            builder = builder.add_extension(limits, critical=True)
        return builder.sign(keys[key], hashed or hashes.SHA256()).public_bytes(Encoding.PEM)

    return make


@pytest.fixture
def bundle(tmp_path):
    """Write blocks into a bundle and give its path."""

    def write(*blocks):
        path = tmp_path / "bundle.pem"
        path.write_bytes(b"".join(blocks))
        return path

    return write
