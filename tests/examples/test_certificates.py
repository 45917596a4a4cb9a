"""The certificates of the pinned certifi, certificates made to be odd, and broken bundles."""

import base64
import hashlib
import json
import os
import re
import sys
import warnings
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from runbook_nb import Envelope, settings
from runbook_nb.coverage import read_absence
from runbook_nb.errors import DefinitionError, LoadError, RunbookError, ToolRefused
from runbook_nb.examples import bundle as bundle_reader
from runbook_nb.examples import certificates as shipped
from runbook_nb.examples.procedure import read_date

AS_OF = "2026-11-29"
GOLDEN = Path(__file__).parent / "golden"
ACCEPT = os.environ.get("RUNBOOK_NB_ACCEPT") == "1"


def held(name: str, found: str) -> None:
    """Compare with a file; with ``RUNBOOK_NB_ACCEPT=1`` the file is written first."""
    path = GOLDEN / name
    if ACCEPT:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert found == path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def envelope():
    return shipped.run(AS_OF)


@pytest.fixture(scope="module")
def parsed():
    """The bundle as the parser alone reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x509.load_pem_x509_certificates(Path(certifi.where()).read_bytes())


def verdicts(envelope) -> dict:
    return {row["certificate"]: row["verdict"] for row in envelope.verdicts}


# -- the real bundle -----------------------------------------------------------------------


def test_the_pinned_bundle_gives_the_known_counts(envelope):
    assert envelope.verdicts.counts() == {"watch": 5, "note": 3, "keep": 109}
    assert envelope["result"]["rows_total"] == 117


def test_a_later_date_moves_the_verdicts():
    later = shipped.run("2030-01-01")
    assert later.verdicts.counts() == {"remove": 8, "plan-removal": 5, "keep": 104}
    assert later["result"]["as_of"] == "2030-01-01"


@pytest.mark.parametrize("as_of", ["2026-11-29", "2028-12-06", "2028-12-07", "2031-06-15"])
def test_the_counts_are_those_of_a_plain_loop_over_the_parser(parsed, as_of):
    midnight = datetime.combine(date.fromisoformat(as_of), datetime.min.time(), UTC)

    def expected(certificate):
        left = (certificate.not_valid_after_utc - midnight).total_seconds() / 86_400
        if left < 0:
            return "remove"
        if left < 366:
            return "plan-removal"
        if left < 1096:
            return "watch"
        return "note" if certificate.signature_hash_algorithm.name == "sha1" else "keep"

    found = shipped.run(as_of).verdicts.counts()
    assert found == Counter(map(expected, parsed))


def test_the_identity_is_the_fingerprint_of_the_whole_certificate(envelope, parsed):
    wanted = {c.fingerprint(hashes.SHA256()).hex() for c in parsed}
    assert {row["fingerprint"] for row in envelope.verdicts} == wanted


def test_every_subject_has_a_name_of_its_own(envelope):
    names = [row["certificate"] for row in envelope.verdicts]
    assert all(name.strip() for name in names)
    assert len(set(names)) == len(names) == 117
    for name in names:
        assert envelope.why(name).decision is not None


def test_a_name_used_by_several_carries_the_fingerprint(envelope):
    alike = [row for row in envelope.verdicts if row["certificate"].startswith("GlobalSign (")]
    assert len(alike) == 4
    for row in alike:
        assert row["certificate"] == f"GlobalSign ({row['fingerprint'][:8]})"


def test_without_a_common_name_the_organisation_and_the_fingerprint_stand_in(envelope, parsed):
    common = x509.oid.NameOID.COMMON_NAME
    nameless = [c for c in parsed if not c.subject.get_attributes_for_oid(common)]
    assert len(nameless) == 3
    rows = {row["fingerprint"]: row["certificate"] for row in envelope.verdicts}
    for certificate in nameless:
        print_ = certificate.fingerprint(hashes.SHA256()).hex()
        (organisation,) = certificate.subject.get_attributes_for_oid(
            x509.oid.NameOID.ORGANIZATION_NAME
        )
        assert rows[print_] == f"{organisation.value} ({print_[:8]})"


def test_the_rows_stand_worst_first_and_the_soonest_end_first(envelope):
    found = [(shipped.RANK.index(r["verdict"]), r["expires"]) for r in envelope.verdicts]
    assert found == sorted(found)


def test_an_outdated_hash_is_a_note_that_says_why_it_is_no_worse(envelope):
    why = envelope.why("ACCVRAIZ1")
    assert why.verdict == "note"
    assert why.decision.cause == 'signature_hash "sha1" in ["md5", "sha1"]'
    assert "harmless on a root" in envelope.meanings["note"]


def test_the_ledger_names_the_source_and_what_it_cannot_cover(envelope):
    ledger = envelope.ledger.to_dict()
    assert ledger["checked"][0] == {"what": "certifi 2026.10.19, 117 certificates"}
    cannot = " / ".join(item["what"] for item in ledger["cannot_cover"])
    assert "whether anybody uses a root at all" in cannot
    assert "lifetime limits of server certificates" in cannot
    assert all(item["why"] for item in ledger["cannot_cover"])


def test_rows_beyond_the_cap_are_counted_and_all_are_kept_in_the_dossier(envelope):
    result = envelope["result"]
    assert (len(result["verdicts"]), result["rows_total"]) == (50, 117)
    assert envelope.verdicts.complete


def test_the_answer_survives_json(envelope):
    copy = Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    assert copy == envelope
    assert copy.why("ACCVRAIZ1").sentence == envelope.why("ACCVRAIZ1").sentence


def test_the_text_and_the_markdown_are_as_agreed(envelope):
    held("certificates.txt", f"{envelope}\n")
    held("certificates.md", f"{envelope.to_markdown()}\n")
    held("why.txt", f"{envelope.why(row=0)}\n")


# -- the date ------------------------------------------------------------------------------


@pytest.mark.parametrize("as_of", ["2026-02-30", "2026-13-01", "29.11.2026", "20261129", "", 7])
def test_an_impossible_date_is_refused_before_anything_runs(as_of):
    box = shipped.toolbox()
    with pytest.raises(ToolRefused, match="as_of"):
        box.call_sync(shipped.NAME, {"as_of": as_of})
    assert box.last_run is None


def test_an_argument_of_another_name_is_refused():
    with pytest.raises(ToolRefused, match="as_of"):
        shipped.toolbox().call_sync(shipped.NAME, {"asof": AS_OF})


def test_without_a_date_it_is_that_of_the_clock_in_the_settings(envelope):
    with settings(clock=lambda: datetime(2026, 11, 29, 23, 59, tzinfo=UTC)):
        assert shipped.run().verdicts == envelope.verdicts


def test_a_date_object_does_as_well(envelope):
    assert str(shipped.run(date(2026, 11, 29))) == str(envelope)
    assert str(shipped.run(datetime(2026, 11, 29, 12, tzinfo=UTC))) == str(envelope)


def test_a_moment_counts_as_its_day():
    assert read_date(datetime(2026, 11, 29, 23, tzinfo=UTC)) == date(2026, 11, 29)


@pytest.mark.parametrize("bad", ["2026-W48-7", "2026-11-29T00:00:00", "2026-2-3", None, 20261129])
def test_rows_are_not_read_for_what_is_no_date(bad):
    with pytest.raises(DefinitionError, match="write it as 2026-11-29"):
        shipped.certificate_rows(bad)


# -- the thresholds ------------------------------------------------------------------------


def sound(**changes):
    """Give the facts of a certificate that nothing is wrong with."""
    return {
        "problem": "",
        "days_since_start": 1000,
        "days_left": 5000,
        "key_type": "RSA",
        "key_bits": 4096,
        "curve": None,
        "signature_hash": "sha256",
        "is_root": True,
    } | changes


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "keep"),
        ({"days_left": -1}, "remove"),
        ({"days_left": 0}, "plan-removal"),
        ({"days_left": 365}, "plan-removal"),
        ({"days_left": 366}, "watch"),
        ({"days_left": 1095}, "watch"),
        ({"days_left": 1096}, "keep"),
        ({"days_since_start": -1}, "declined"),
        ({"days_since_start": 0}, "keep"),
        ({"key_bits": 2047}, "weak-key"),
        ({"key_bits": 2048}, "keep"),
        ({"key_type": "EC", "key_bits": 256, "curve": "secp256r1"}, "keep"),
        ({"key_type": "EC", "key_bits": 521, "curve": "secp521r1"}, "keep"),
        ({"key_type": "EC", "key_bits": 256, "curve": "secp256k1"}, "weak-key"),
        ({"key_type": "EC", "key_bits": 224, "curve": "secp224r1"}, "weak-key"),
        ({"key_type": "DSA"}, "declined"),
        ({"signature_hash": "sha1"}, "note"),
        ({"signature_hash": "md5"}, "note"),
        ({"signature_hash": None}, "declined"),
        ({"is_root": False}, "declined"),
        ({"problem": "a fault"}, "declined"),
        # the worse one stands
        ({"days_left": -1, "key_bits": 1024}, "remove"),
        ({"days_left": 200, "key_bits": 1024}, "weak-key"),
        ({"days_left": 500, "signature_hash": "sha1"}, "watch"),
        ({"days_left": None}, "declined"),
    ],
)
def test_each_limit_falls_where_the_rules_say(changes, verdict):
    from runbook_nb import decide

    assert decide(sound(**changes), shipped.rules()).branch == verdict


def test_the_rules_name_a_meaning_for_each_verdict_and_rank_them_all():
    rules = shipped.rules()
    assert set(rules.branches) == set(shipped.RANK)
    assert all(rule.label for rule in rules.rules)
    assert rules.rules[6].unit_of("days_left") == "days"
    assert rules.rules[3].unit_of("key_bits") == "bits"
    assert rules.rules[3].unit_of("key_type") is None


# -- certificates made to be odd -----------------------------------------------------------


def rows_of(path, as_of=AS_OF):
    return shipped.certificate_rows(as_of, path)


@pytest.mark.parametrize(
    ("key", "facts"),
    [
        ("rsa-2048", ("RSA", 2048, None)),
        ("rsa-1024", ("RSA", 1024, None)),
        ("p-521", ("EC", 521, "secp521r1")),
        ("k-256", ("EC", 256, "secp256k1")),
    ],
)
def test_a_key_is_read(made, bundle, key, facts):
    (row,) = rows_of(bundle(made(key=key)))
    assert (row["key_type"], row["key_bits"], row["curve"]) == facts
    assert row["problem"] == ""


def test_weak_keys_and_short_lives_are_judged(made, bundle):
    path = bundle(
        made("short", key="rsa-1024"),
        made("curve", key="p-192"),
        made("over", end="2026-11-28T23:59:59"),
        made("last day", end="2026-11-29T00:00:00"),
        made("fine", key="p-521"),
        made("to come", start="2026-11-30"),
    )
    assert verdicts(shipped.run(AS_OF, path)) == {
        "over": "remove",
        "short": "weak-key",
        "curve": "weak-key",
        "last day": "plan-removal",
        "to come": "declined",
        "fine": "keep",
    }


def test_what_is_no_root_lies_outside_the_rules(made, bundle):
    path = bundle(
        made("issued", issuer="somebody else"),
        made("server", may_issue=False),
        made("before extensions", may_issue=None),
    )
    answer = shipped.run(AS_OF, path)
    found = verdicts(answer)
    assert found == {"issued": "declined", "server": "declined", "before extensions": "keep"}
    assert "certificates that are not roots" in answer.why("server").sentence


def test_names_are_never_empty_and_never_alike(made, bundle):
    twice = made("Twin")
    path = bundle(
        made("Same"),
        made("Same"),
        made(None, "Organisation"),
        made(None, None),
        made("  ", "Blank"),
        twice,
        twice,
    )
    rows = rows_of(path)
    prints = [row["fingerprint"][:8] for row in rows]
    assert [row["certificate"] for row in rows] == [
        f"Same ({prints[0]})",
        f"Same ({prints[1]})",
        f"Organisation ({prints[2]})",
        f"no name ({prints[3]})",
        f"Blank ({prints[4]})",
        f"Twin ({prints[5]})",
        f"Twin ({prints[6]}) (block 7, line {rows[6]['certificate'].split()[-1][:-1]})",
    ]
    assert len(shipped.run(AS_OF, path).verdicts) == 7


def test_a_name_made_up_to_look_like_another_is_told_apart(made, bundle):
    first, second = made("Same"), made("Same")
    print_ = rows_of(bundle(first, second))[0]["fingerprint"][:8]
    rows = rows_of(bundle(made(f"Same ({print_})"), first, second))
    assert len({row["certificate"] for row in rows}) == 3


def test_hostile_text_in_a_name_is_shown_as_text(made, bundle):
    answer = shipped.run(AS_OF, bundle(made("<script>|alert\x1b[31m\u202e(1)")))
    assert "\x1b" not in str(answer)
    assert "<script>" not in answer.to_markdown().replace("`<script>", "")
    assert answer.verdicts[0]["certificate"] == "<script>|alert\x1b[31m\u202e(1)"


# -- broken bundles ------------------------------------------------------------------------


def broken_date(pem: bytes) -> bytes:
    """Give the certificate an end in the thirteenth month."""
    lines = pem.splitlines()
    der = base64.b64decode(b"".join(lines[1:-1]))
    assert der.count(b"400101000000Z") == 1
    return pem_of(der.replace(b"400101000000Z", b"401301000000Z"))


def pem_of(der: bytes, kind: str = "CERTIFICATE") -> bytes:
    body = base64.encodebytes(der)
    return f"-----BEGIN {kind}-----\n".encode() + body + f"-----END {kind}-----\n".encode()


def test_each_fault_is_a_declined_row_that_names_it(made, bundle):
    good = made("good")
    path = bundle(
        b"a comment\n",
        good,
        b"-----BEGIN CERTIFICATE-----\nthis is no base64 !\n-----END CERTIFICATE-----\n",
        pem_of(b"\x30\x03\x02\x01\x05"),
        pem_of(b"secret", "PRIVATE KEY"),
        broken_date(made("undated")),
        made("cut").rpartition(b"-----END")[0],
        made("last").replace(b"-----END CERTIFICATE-----", b""),
    )
    answer = shipped.run(AS_OF, path)
    problems = {row["certificate"]: row.get("problem") for row in answer.verdicts}
    declined = {r["certificate"] for r in answer.verdicts if r["verdict"] == "declined"}
    assert len(problems) == 7
    assert declined == problems.keys() - {"good"}
    assert problems["good"] is None
    told = sorted(problem for problem in problems.values() if problem)
    assert [re.split(r": ", problem)[0] for problem in told] == [
        "the block does not end",
        "the block does not end",
        "the block holds a private key, not a certificate",
        "the block holds no certificate",
        "the block holds no certificate",
        "the block holds something other than base64",
    ]
    for name in declined:
        assert problems[name] in answer.why(name).sentence or len(problems[name]) > 60
    assert "c2VjcmV0" not in answer.to_json(dossier=True)
    assert "good" in verdicts(answer)


def test_the_ledger_counts_what_could_not_be_read_apart(made, bundle):
    answer = shipped.run(AS_OF, bundle(made("good"), pem_of(b"nothing")))
    ledger = answer.ledger.to_dict()
    assert ledger["checked"][0]["what"] == "bundle bundle.pem, 1 certificate"
    assert ledger["not_checked"][0]["what"] == "1 block of bundle bundle.pem that could not be read"


@pytest.mark.parametrize("part", ["_name", "_lifetime", "_key", "_signature", "_role"])
def test_a_part_that_cannot_be_read_declines_and_keeps_the_rest(made, bundle, monkeypatch, part):
    def fail(certificate, day):
        raise ValueError("bytes\nof nonsense")

    fail.__name__ = part
    monkeypatch.setattr(bundle_reader, part, fail)
    (row,) = rows_of(bundle(made("odd")))
    assert row["problem"] == f"its {part[1:]} cannot be read: bytes"
    assert row["fingerprint"]
    answer = shipped.run(AS_OF, bundle(made("odd")))
    assert answer.verdicts[0]["verdict"] == "declined"
    assert answer.verdicts[0]["problem"] == row["problem"]


def test_a_broken_block_keeps_its_line_and_the_fingerprint_of_its_bytes(bundle):
    (row,) = rows_of(bundle(b"one\ntwo\n", pem_of(b"nothing")))
    assert row["certificate"] == "unreadable (block 1, line 3)"
    assert row["fingerprint"] == hashlib.sha256(b"nothing").hexdigest()


def test_an_empty_bundle_is_an_absence(bundle):
    path = bundle(b"nothing in here\n")
    answer = shipped.toolbox(path).call_sync(shipped.NAME, {"as_of": AS_OF})
    assert read_absence(answer)["looked_for"] == "certificates in bundle bundle.pem"
    with pytest.raises(RunbookError, match="nothing found") as told:
        shipped.run(AS_OF, path)
    assert told.value.code == "absent"


def test_a_bundle_that_is_not_there_fails_the_run(tmp_path):
    with pytest.raises(LoadError, match=r"'gone\.pem' cannot be opened") as told:
        shipped.run(AS_OF, tmp_path / "gone.pem")
    assert told.value.run.status == "failed"


@pytest.mark.parametrize("package", ["certifi", "cryptography.x509"])
def test_a_missing_package_gives_the_lines_that_install_it(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LoadError) as told:
        shipped.certificate_rows(AS_OF)
    assert told.value.code == "missing_package"
    assert "pip install certifi cryptography" in str(told.value)
    assert "conda install -c conda-forge certifi cryptography" in str(told.value)


def test_past_the_cap_certificates_are_not_reached_and_said_to_be(made, bundle, monkeypatch):
    monkeypatch.setattr(shipped, "MAX_CERTIFICATES", 2)
    answer = shipped.run(AS_OF, bundle(made("a"), made("b"), made("c")))
    assert len(answer.verdicts) == 2
    gaps = [item["what"] for item in answer.ledger.to_dict()["not_checked"]]
    assert "1 subject(s) of 'Judge each certificate' not reached" in gaps


FRAGMENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n", b"-----BEGIN X-----\n"]
    ),
    st.binary(max_size=40).map(base64.encodebytes),
    st.binary(max_size=40).map(pem_of),
)


@given(st.lists(FRAGMENTS, max_size=12))
@hypothesis_settings(deadline=None)
def test_no_bytes_make_it_fail_or_leave_a_block_out(tmp_path_factory, fragments):
    path = tmp_path_factory.getbasetemp() / "any.pem"
    path.write_bytes(b"".join(fragments))
    rows = rows_of(path)
    begun = len(re.findall(rb"-----BEGIN [A-Z0-9 ]{1,64}-----", path.read_bytes()))
    assert len(rows) == begun
    assert all(row["problem"] for row in rows)
    assert len({row["certificate"] for row in rows}) == len(rows)


@given(st.integers(0, 2000), st.integers(0, 255))
@hypothesis_settings(deadline=None, max_examples=200)
def test_a_changed_byte_is_read_or_named(tmp_path_factory, place, byte):
    pem = Path(certifi.where()).read_bytes().partition(b"-----END")[0].partition(b"-----BEGIN ")[2]
    der = bytearray(base64.b64decode(b"".join(pem.splitlines()[1:])))
    der[place % len(der)] = byte
    path = tmp_path_factory.getbasetemp() / "changed.pem"
    path.write_bytes(pem_of(bytes(der)))
    (row,) = rows_of(path)
    assert row["certificate"].strip()
    assert row["problem"] or row["days_left"] is not None
