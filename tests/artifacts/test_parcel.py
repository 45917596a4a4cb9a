"""The one reading of what is handed in to a store."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb import _ids
from runbook_nb._frozen import freeze
from runbook_nb.artifacts import is_ref
from runbook_nb.artifacts.parcel import digest_of, read_origin, read_parcel
from runbook_nb.errors import ArtifactError

REF = "art_" + "aB3" * 7 + "z"
GOOD = {"kind": "k", "mediaType": "m", "data": "x"}


def refusal(**changes) -> ArtifactError:
    artifact = {**GOOD, **changes}
    with pytest.raises(ArtifactError) as caught:
        read_parcel(artifact, 1000)
    return caught.value


# --- references --------------------------------------------------------------------------------


def test_a_reference_is_art_and_22_letters_and_digits():
    assert is_ref(REF)


@pytest.mark.parametrize(
    "value",
    [
        REF + "\n",
        REF + "a",
        REF[:-1],
        REF[:-1] + "-",
        REF[:-1] + "é",
        REF[:-1] + "٣",
        "ART_" + REF[4:],
        " " + REF,
        "art_../x",
        "",
        None,
        5,
        REF.encode(),
        [REF],
    ],
)
def test_anything_else_is_no_reference(value):
    assert not is_ref(value)


# --- parcels -----------------------------------------------------------------------------------


def test_both_spellings_of_a_key_are_read():
    wire = read_parcel({**GOOD, "expiresAt": 2000, "parentRefs": [REF]}, 1000)
    snake = read_parcel(
        {"kind": "k", "media_type": "m", "data": "x", "expires_at": 2000, "parent_refs": [REF]},
        1000,
    )
    assert wire == snake
    assert (wire.expires_at, wire.parent_refs, wire.payload) == (2000, (REF,), b"x")


def test_a_key_in_two_spellings_is_refused():
    assert "twice" in str(refusal(media_type="m"))


@pytest.mark.parametrize("key", ["kind", "mediaType"])
@pytest.mark.parametrize("value", [" ", "", None, 5, ["k"], b"k", "\ud800"])
def test_a_blank_kind_or_media_type_is_refused_by_name(key, value):
    error = refusal(**{key: value})
    assert (error.code, error.where) == ("invalid_artifact", key)
    assert key in str(error)


@pytest.mark.parametrize("missing", ["kind", "mediaType", "data"])
def test_what_is_left_out_is_refused_by_name(missing):
    with pytest.raises(ArtifactError, match=missing):
        read_parcel({k: v for k, v in GOOD.items() if k != missing}, 0)


@pytest.mark.parametrize("artifact", [None, "x", [("kind", "k")], 5, b"x"])
def test_an_artifact_is_a_mapping(artifact):
    with pytest.raises(ArtifactError, match="handed in as a mapping"):
        read_parcel(artifact, 0)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("mediatype", "mediaType"),
        ("lable", "label"),
        ("parents", "parentRefs"),
        ("expires", "expiresAt"),
        ("zzz", "its keys are kind, mediaType"),
        (5, "its keys are kind, mediaType"),
    ],
)
def test_an_unknown_key_is_refused_with_the_likely_one(key, near):
    with pytest.raises(ArtifactError) as caught:
        read_parcel({**GOOD, key: 1}, 0)
    assert near in str(caught.value)


@pytest.mark.parametrize("value", [1000, 999, 0, -5, 5.5, float("nan"), float("inf"), "2000", True])
def test_an_expiry_that_is_past_or_no_whole_number_is_refused(value):
    assert refusal(expiresAt=value).where == "expiresAt"


def test_an_expiry_may_arrive_as_a_whole_float():
    expiry = read_parcel({**GOOD, "expiresAt": 1.7e12}, 1000).expires_at
    assert (expiry, type(expiry)) == (1_700_000_000_000, int)


@pytest.mark.parametrize("value", ["md5", "sha256", "SHA-256", True, 256, ["sha-256"]])
def test_an_unknown_digest_is_refused_naming_the_one_there_is(value):
    error = refusal(digest=value)
    assert error.where == "digest"
    assert "'sha-256'" in error.fix
    assert read_parcel({**GOOD, "digest": "sha-256"}, 0).kind == "k"


@pytest.mark.parametrize("label", ["", " ", 5, ["x"], "\udfff"])
def test_a_label_says_something_or_is_left_out(label):
    assert refusal(label=label).where == "label"
    assert read_parcel({**GOOD, "label": None}, 0).label is None


@pytest.mark.parametrize("parents", [REF, {REF}, {"a": REF}, 5])
def test_parents_are_a_list(parents):
    assert refusal(parentRefs=parents).code == "invalid_artifact"


def test_a_malformed_parent_is_an_unknown_one():
    error = refusal(parentRefs=[REF, "art_../x"])
    assert (error.code, error.where) == ("unknown_parent", "parentRefs[1]")


@pytest.mark.parametrize(
    ("origin", "read"),
    [
        (None, None),
        ({}, None),
        ({"runId": None}, None),
        ({"toolCallId": "c", "runId": "r"}, {"runId": "r", "toolCallId": "c"}),
        ({"tool_call_id": "c"}, {"toolCallId": "c"}),
    ],
)
def test_an_origin_holds_the_ids_that_are_present(origin, read):
    assert read_origin(origin) == read


@pytest.mark.parametrize("origin", ["c", ["c"], {"toolCallId": ""}, {"runId": 5}, {"callId": "c"}])
def test_an_origin_that_cannot_be_read_is_refused(origin):
    assert refusal(origin=origin).code == "invalid_artifact"


# --- payloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "payload", "form"),
    [
        ("é", "é".encode(), "text"),
        ("", b"", "text"),
        (b"\x00\xff", b"\x00\xff", "bytes"),
        (bytearray(b"ab"), b"ab", "bytes"),
        (memoryview(b"ab"), b"ab", "bytes"),
        ({"a": [1, None, True], "é": "ü"}, '{"a":[1,null,true],"é":"ü"}'.encode(), "text"),
        (None, b"null", "text"),
        (0, b"0", "text"),
        ((1, 2), b"[1,2]", "text"),
        (freeze({"a": 1}), b'{"a":1}', "text"),
    ],
)
def test_a_payload_is_text_bytes_or_compact_json(data, payload, form):
    parcel = read_parcel({**GOOD, "data": data}, 0)
    assert (parcel.payload, parcel.form) == (payload, form)


def cyclic():
    value = {}
    value["self"] = [value]
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "data",
    [
        {"a", "b"},
        {"at": date(2026, 1, 1)},
        {1: "a"},
        float("nan"),
        [float("inf")],
        "\ud800",
        {"\udfff": 1},
        {"a": "\udfff"},
        object(),
        cyclic(),
        deep(),
        10**5000,
        1 + 2j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_or_utf8_cannot_carry_is_refused_and_never_approximated(data):
    error = refusal(data=data)
    assert (error.code, error.where) == ("invalid_artifact", "data")
    assert len(str(error)) < 1000


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@trials(deadline=None)
@given(json_values.filter(lambda value: not isinstance(value, str)))
def test_the_measured_size_is_that_of_the_text_json_writes(value):
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        payload = text.encode()
    except UnicodeEncodeError:
        assert refusal(data=value).where == "data"
        return
    assert read_parcel({**GOOD, "data": value}, 0).payload == payload


def test_the_digest_of_text_is_the_packages_digest_of_that_text():
    assert digest_of("é".encode()) == _ids.digest("é")
