"""Names of secrets are read by their words, and what stands beside one is found."""

import pytest

from runbook_nb.share.secretnames import given_away, looks_secret


@pytest.mark.parametrize(
    "name",
    [
        *(
            "password",
            "DB_PASSWORD",
            "githubToken",
            "api-key",
            "auth.token",
            "APIKey",
            "client_secret",
        ),
        *("Authorization", "privateKey2", "passwordHash", "AWS_SECRET_ACCESS_KEY", "pin"),
    ],
)
def test_names_of_secrets(name):
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "token_count", "key", "password_rules", "host", "", "pinned", "secretary"),
        *("tokenizer", "x" * 300 + "_token", "primary_key", "access"),
    ],
)
def test_names_of_nothing_secret(name):
    assert not looks_secret(name)


FOUND = [
    ('password: str = "hunter2"', ["hunter2"]),
    ('{"password": "hunter2", "x": 1}', ["hunter2"]),
    ("{'api_key': 'abc-def'}", ["abc-def"]),
    (r"{\"token\": \"abc\"}", ["abc"]),
    ("&quot;password&quot;: &quot;it-is&quot;", ["it-is"]),
    ("GET /x?token=abc123&y=1", ["abc123"]),
    ("run --token=abcdef1 now", ["abcdef1"]),
    ("https://ann:pw123456@host/x", ["pw123456"]),
    ("Authorization: Bearer abcdefghijkl", ["abcdefghijkl"]),
    ("os.environ['API_TOKEN'] = 'zzz-1'", ["zzz-1"]),
    ('password = """a\nb"""', ["a\nb"]),
    ('if token == "abc":', ["abc"]),
    ("password='it\\'s-me'", ["it\\'s-me"]),
    ("a='b', z=\"token='inner1'\"", ["inner1"]),
]


@pytest.mark.parametrize(("text", "values"), FOUND)
def test_values_beside_such_a_name(text, values):
    assert [text[start:end] for start, end in given_away(text, looks_secret)] == values


@pytest.mark.parametrize(
    "text",
    [
        *(
            "password = '[REDACTED]'",
            "password = ''",
            "password='****'",
            "token = None",
            "token: x",
        ),
        *(
            "rb.Redact(keys=['password'])",
            "max_tokens='512'",
            "https://host:443/x",
            "password=None",
        ),
    ],
)
def test_what_is_no_value_of_one(text):
    assert not list(given_away(text, looks_secret))


def test_in_python_a_name_before_a_colon_has_a_type_behind_it():
    assert not list(given_away('def f(token: "Token"): ...', looks_secret, code=True))
    assert not list(given_away("f(token=my_token)", looks_secret, code=True))


@pytest.mark.parametrize(
    "text",
    [
        *("token='" * 20_000, "secret='" + "\\" * 20_000, "a-" * 20_000 + "=", "://a:" * 20_000),
        *("\\" * 20_000 + "'", "bearer " * 20_000, "a" * 50_000 + ":"),
    ],
)
def test_hostile_texts_take_no_longer_than_their_length(text):
    """Each of these would take hours if the patterns went back over what they had read."""
    assert not [text[start:end] for start, end in given_away(text, looks_secret) if end - start < 3]
