"""Limits by the day of issue and by what is left, and certificates made to lie on both sides."""

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID as Use
from cryptography.x509.oid import NameOID

import runbook_nb as rb
from runbook_nb import decide
from runbook_nb.errors import DefinitionError, RunbookError, ToolRefused
from runbook_nb.examples import lifetimes as shipped

AS_OF = "2026-11-29"
DAY = dt.timedelta(days=1)
SECOND = dt.timedelta(seconds=1)


@pytest.fixture
def issue(keys):
    """Make a certificate that one authority signed, and give its PEM block."""

    def make(common="www", *, start, end, uses=(Use.SERVER_AUTH,), may_issue=False, issuer="CA"):
        name, other = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (common, issuer)
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(other)
            .public_key(keys["p-256"].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
        )
        if may_issue is not None:
            basic = x509.BasicConstraints(ca=may_issue, path_length=None)
            builder = builder.add_extension(basic, critical=True)
        if uses:
            builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        return builder.sign(keys["p-256"], hashes.SHA256()).public_bytes(Encoding.PEM)

    return make


def moment(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def term(**changes):
    """Give the facts of a server certificate of a public authority that nothing is wrong with."""
    return {
        "problem": "",
        "issued": dt.date(2026, 11, 1),
        "hours_since_start": 672.0,
        "hours_left": 1000.0,
        "days_left": 41,
        "lifetime_days": 90,
        "is_client": False,
        "is_server": True,
        "may_issue": False,
        "is_root": False,
        "authority": "public",
    } | changes


def client(**changes):
    return term(is_client=True, is_server=False, authority="private", **changes)


def authority(**changes):
    return term(is_server=False, may_issue=True, authority="private", **changes)


# -- the limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("issued", "days", "verdict"),
    [
        ("2020-08-31", 398, "declined"),
        ("2020-09-01", 398, "within-limits"),
        ("2020-09-01", 399, "too-long"),
        ("2026-03-14", 398, "within-limits"),
        ("2026-03-14", 399, "too-long"),
        ("2026-03-15", 200, "within-limits"),
        ("2026-03-15", 201, "too-long"),
        ("2027-03-14", 200, "within-limits"),
        ("2027-03-14", 201, "too-long"),
        ("2027-03-15", 100, "within-limits"),
        ("2027-03-15", 101, "too-long"),
        ("2029-03-14", 100, "within-limits"),
        ("2029-03-14", 101, "too-long"),
        ("2029-03-15", 47, "within-limits"),
        ("2029-03-15", 48, "too-long"),
        ("2040-01-01", 47, "within-limits"),
        ("2040-01-01", 48, "too-long"),
    ],
)
def test_the_limit_is_that_of_the_day_of_issue(issued, days, verdict):
    facts = term(issued=dt.date.fromisoformat(issued), lifetime_days=days)
    assert decide(facts, shipped.rules()).branch == verdict


def test_today_moves_no_limit_of_a_server_certificate():
    facts = term(issued=dt.date(2026, 3, 14), lifetime_days=398)
    for left in (0.0, 10.0, 9000.0):
        assert decide(facts | {"hours_left": left}, shipped.rules()).branch == "within-limits"


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (client(hours_left=168.0), "within-limits"),
        (client(hours_left=167.99), "warning"),
        (client(hours_left=24.0), "warning"),
        (client(hours_left=23.99), "critical"),
        (client(hours_left=0.0), "critical"),
        (client(hours_left=-0.01), "expired"),
        (client(hours_left=None), "declined"),
        (client(hours_since_start=-0.01), "declined"),
        (client(hours_since_start=0.0), "within-limits"),
        (authority(days_left=365), "within-limits"),
        (authority(days_left=364), "critical"),
        (authority(days_left=None), "declined"),
        (authority() | {"authority": "public"}, "declined"),
        (authority() | {"authority": ""}, "declined"),
        (term(hours_left=-1.0), "expired"),
        (term(hours_left=3.0), "within-limits"),
        (term(authority=""), "declined"),
        (term(authority="private"), "declined"),
        (term(authority="private", hours_left=-1.0), "expired"),
        (term(is_server=False), "declined"),
        (term(problem="a fault"), "declined"),
        # a certificate for both is judged as both, and the worse stands
        (term(is_client=True, lifetime_days=300, hours_left=5.0), "critical"),
        (term(is_client=True, lifetime_days=300, hours_left=50.0), "too-long"),
        (term(is_client=True, hours_left=50.0), "warning"),
        (term(is_client=True, authority="private", hours_left=500.0), "within-limits"),
    ],
)
def test_each_limit_falls_where_the_sources_say(facts, verdict):
    assert decide(facts, shipped.rules()).branch == verdict


def test_what_is_out_of_scope_is_named_as_such():
    sentence = decide(term(authority="private"), shipped.rules()).sentence
    assert "server certificates of private authorities" in sentence
    assert "the schedule binds public authorities alone" in sentence


# -- certificates --------------------------------------------------------------------------------


def terms_of(path, as_of=AS_OF):
    return shipped.lifetime_rows(as_of, path)


@pytest.mark.parametrize(
    ("end", "days"),
    [
        (moment("2026-06-01") + 200 * DAY - SECOND, 200),
        (moment("2026-06-01") + 200 * DAY, 201),
        (moment("2026-06-01") + 199 * DAY, 200),
        (moment("2026-06-01") + 199 * DAY - SECOND, 199),
    ],
)
def test_a_lifetime_has_both_ends_and_a_day_begun_counts(issue, bundle, end, days):
    """Why authorities issue a day less: the last second may not begin another day."""
    (row,) = terms_of(bundle(issue(start=moment("2026-06-01"), end=end)))
    assert row["lifetime_days"] == days
    assert row["issued"] == dt.date(2026, 6, 1)


def test_what_is_left_is_counted_from_the_moment(issue, bundle):
    path = bundle(issue(start=moment("2026-11-01"), end=moment("2026-11-30T12:00:00")))
    assert terms_of(path)[0]["hours_left"] == 36.0
    assert terms_of(path, "2026-11-30T11:00:00Z")[0]["hours_left"] == 1.0
    assert terms_of(path, "2026-11-30T13:00:00+01:00")[0]["hours_left"] == 0.0
    assert terms_of(path, "2026-11-30T12:00:01Z")[0]["hours_left"] < 0


@pytest.mark.parametrize(
    ("uses", "may_issue", "wanted"),
    [
        ((Use.SERVER_AUTH,), False, (False, True, False)),
        ((Use.CLIENT_AUTH,), False, (True, False, False)),
        ((Use.CLIENT_AUTH, Use.SERVER_AUTH), False, (True, True, False)),
        ((Use.EMAIL_PROTECTION,), False, (False, False, False)),
        ((Use.ANY_EXTENDED_KEY_USAGE,), False, (True, True, False)),
        ((), False, (True, True, False)),
        ((), None, (True, True, False)),
        ((), True, (False, False, True)),
        ((Use.SERVER_AUTH,), True, (False, False, True)),
    ],
)
def test_what_it_is_for_is_read(issue, bundle, uses, may_issue, wanted):
    block = issue(
        start=moment("2026-11-01"), end=moment("2027-01-01"), uses=uses, may_issue=may_issue
    )
    (row,) = terms_of(bundle(block))
    assert (row["is_client"], row["is_server"], row["may_issue"]) == wanted
    assert row["is_root"] is False


def test_a_root_is_one_that_signed_itself(issue, bundle):
    start, end = moment("2020-01-01"), moment("2040-01-01")
    block = issue("CA", start=start, end=end, uses=(), may_issue=True)
    assert terms_of(bundle(block))[0]["is_root"] is True


@pytest.fixture
def cluster(issue, bundle):
    start = moment("2026-06-01")
    return bundle(
        issue("admin", start=start, end=moment("2026-11-29T20:00:00"), uses=(Use.CLIENT_AUTH,)),
        issue("kubelet", start=start, end=moment("2026-12-03"), uses=(Use.CLIENT_AUTH,)),
        issue("scheduler", start=start, end=moment("2027-05-01"), uses=(Use.CLIENT_AUTH,)),
        issue("gone", start=start, end=moment("2026-11-28"), uses=(Use.CLIENT_AUTH,)),
        issue("etcd-signer", start=start, end=moment("2027-11-28"), uses=(), may_issue=True),
        issue("kube-ca", start=start, end=moment("2036-11-28"), uses=(), may_issue=True),
        issue("dashboard", start=start, end=moment("2027-01-01")),
        b"-----BEGIN CERTIFICATE-----\nbad\n-----END CERTIFICATE-----\n",
    )


def words(answer):
    return {row["certificate"]: row["verdict"] for row in answer.verdicts}


def test_the_certificates_of_a_cluster(cluster):
    found = words(shipped.run(bundle=cluster, authority="private", as_of=AS_OF))
    (unread,) = [name for name in found if name.startswith("unreadable (block 8, line")]
    assert found == {
        "gone": "expired",
        "admin": "critical",
        "etcd-signer": "critical",
        "kubelet": "warning",
        "dashboard": "declined",
        unread: "declined",
        "scheduler": "within-limits",
        "kube-ca": "within-limits",
    }


def test_without_a_word_on_the_authority_what_rests_on_it_is_declined(cluster):
    found = words(shipped.run(bundle=cluster, as_of=AS_OF))
    assert found["gone"] == "expired"
    assert found["admin"] == "critical"
    assert found["etcd-signer"] == found["kube-ca"] == found["dashboard"] == "declined"
    why = shipped.run(bundle=cluster, as_of=AS_OF).why("dashboard").sentence
    assert 'authority "" not in ["public", "private"]' in why


def test_a_public_chain(issue, bundle):
    path = bundle(
        issue("short", start=moment("2026-06-01"), end=moment("2026-12-17") - SECOND),
        issue("long", start=moment("2026-06-01"), end=moment("2027-06-01")),
        issue("old", start=moment("2026-03-14"), end=moment("2027-04-15")),
        issue("middle", start=moment("2020-01-01"), end=moment("2035-01-01"), may_issue=True),
    )
    answer = shipped.run(bundle=path, authority="public", as_of=AS_OF)
    assert words(answer) == {
        "long": "too-long",
        "middle": "declined",
        "short": "within-limits",
        "old": "within-limits",
    }
    assert "lifetime_days 366 > 200 days" in answer.why("long").sentence
    assert "certificates of public authorities" in answer.why("middle").sentence


def test_the_same_bundle_at_another_moment(cluster):
    later = words(shipped.run(bundle=cluster, authority="private", as_of="2027-04-28"))
    assert later["scheduler"] == "warning"
    assert later["admin"] == "expired"


def test_the_roots_of_public_trust_are_out_of_scope():
    import certifi

    answer = shipped.run(bundle=certifi.where(), authority="public", as_of=AS_OF)
    assert answer.verdicts.counts() == {"declined": 117}
    cannot = [item.what for item in answer.ledger.cannot_cover]
    assert "certificates of public authorities" in cannot


def test_the_ledger_says_who_said_who_signed(cluster):
    ledger = shipped.run(bundle=cluster, authority="private", as_of=AS_OF).ledger
    assert ledger.checked[0].what == "bundle bundle.pem, 8 certificates"
    items = {item.what: item.why for item in ledger.cannot_cover}
    assert "taken from whoever asks" in items["whether it is what the word on its authority says"]
    assert "how soon a server certificate ends" in [item.what for item in ledger.not_checked]


# -- how it is asked -----------------------------------------------------------------------------


def test_without_a_bundle_nothing_runs():
    box = shipped.toolbox()
    with pytest.raises(ToolRefused, match="bundle"):
        box.call_sync(shipped.NAME, {"as_of": AS_OF})
    assert box.last_run is None


def test_another_word_for_the_authority_is_refused(cluster):
    with pytest.raises(ToolRefused, match="authority"):
        shipped.run(bundle=cluster, authority="mine")


def test_a_bundle_may_be_asked_for_by_name(cluster):
    args = {"bundle": str(cluster), "authority": "private", "as_of": f"{AS_OF}T00:00:00Z"}
    answer = shipped.toolbox().call_sync(shipped.NAME, args)
    assert words(answer)["admin"] == "critical"


def test_an_empty_bundle_is_an_absence(bundle):
    with pytest.raises(RunbookError, match=r"certificates in bundle bundle\.pem"):
        shipped.run(bundle=bundle(b"nothing\n"), as_of=AS_OF)


def test_the_moment_is_that_of_the_clock_when_left_out(cluster):
    at = moment("2026-11-29T19:59:00")
    with rb.settings(clock=lambda: at):
        assert words(shipped.run(bundle=cluster, authority="private"))["admin"] == "critical"
    with rb.settings(clock=lambda: at + dt.timedelta(minutes=2)):
        assert words(shipped.run(bundle=cluster, authority="private"))["admin"] == "expired"


@pytest.mark.parametrize("bad", ["tomorrow", "2026-02-30T00:00:00Z", "2026-11-29", 7])
def test_what_is_no_moment_is_refused_before_anything_runs(cluster, bad):
    box = shipped.toolbox(bundle=cluster)
    with pytest.raises(ToolRefused, match="as_of"):
        box.call_sync(shipped.NAME, {"as_of": bad})
    assert box.last_run is None


def test_a_moment_without_a_zone_is_not_guessed_at(cluster):
    with pytest.raises(DefinitionError, match="not a moment with a zone") as told:
        shipped.toolbox(bundle=cluster).call_sync(shipped.NAME, {"as_of": "2026-11-29T15:00:00"})
    assert told.value.run.status == "failed"
