"""What a notebook gives away of its secrets is learnt from sources, data and texts."""

import pytest

from runbook_nb.record.redact import Redact, Redactor
from runbook_nb.share.learning import Learning, is_code


def learnt(source, **policy):
    learning = Learning(Redactor(Redact(**policy) if policy else None))
    learning.take_code_names(source)
    learning.take_code(source)
    return learning.texts


CODE = [
    "password = 'hunter-2x'",
    "x.password: str = 'hunter-2x'",
    "(user, password) = ('ann', 'hunter-2x')",
    "if (token := 'hunter-2x'): pass",
    "login(password='hunter-2x')",
    "row = {'api_key': 'hunter-2x'}",
    "os.environ['API_TOKEN'] = 'hunter-2x'",
    "def f(user, password='hunter-2x'): ...",
    "def f(*, password='hunter-2x'): ...",
    "assert password == 'hunter-2x'",
    "password = SecretStr('hunter-2x')",
    "password = 'hunter-2x'.encode()",
    "password = 'hunter' + '-2x'",
    "password = given or 'hunter-2x'",
    "password = 'hunter-2x' if a else 'hunter-2x'",
    "%time\npassword = 'hunter-2x'",
    "password = ['hunter-2x']",
    "rb.triage(rows, rules, redact=rb.Redact(values=['hunter-2x']))",
    "rb.triage(rows, rules, redact={'values': ['hunter-2x']})",
    "chart.run(redact={'keys': ['stash']}); stash = 'hunter-2x'",
    "def f(who: SecretStr): ...\nf(who='hunter-2x')",
    "def f(who: Annotated[str, F(extra={'writeOnly': True})]): ...\nwho='hunter-2x'",
    "class A:\n    who: SecretStr\nA(who='hunter-2x')",
    "s = {'properties': {'who': {'writeOnly': True}}}\nbox.call('a', {'who': 'hunter-2x'})",
    "s = {'properties': {'password': {'type': 'string', 'default': 'hunter-2x'}}}",
]


@pytest.mark.parametrize("source", CODE)
def test_literals_under_the_name_of_a_secret(source):
    assert learnt(source) == {"hunter-2x"}


@pytest.mark.parametrize(
    "source",
    [
        "s = {'properties': {'password': {'type': 'string', 'description': 'the password'}}}",
        "password = os.environ['PASSWORD_OF_MINE']",
        "password = getpass('Password: ')",
        "token = 'API_TOKEN'",
        "password = 'password'",
        "password = 'short'",
        "password = True",
        "password = f'{x}-abcdef'",
        "not python at all = ",
        "\x00",
    ],
)
def test_what_is_no_secret(source):
    assert learnt(source) == set()


def test_names_come_from_the_policy_too():
    assert learnt("stash = 'hunter-2x'", keys=("stash",)) == {"hunter-2x"}


def test_without_guessing_only_what_was_named_is_one():
    learning = Learning(Redactor(Redact(keys=("stash",))), guess=False)
    learning.take({"password": "hunter-2x", "stash": "eichel-77"})
    assert learning.texts == {"eichel-77"}


def test_data_is_looked_through_at_every_depth():
    learning = Learning(Redactor(None))
    data = {
        "rows": [{"token": {"of": ["hunter-2x", 47114711]}}],
        "conditions": [{"key": "db.password", "op": "eq", "threshold": "eichel-77"}],
        "fields": [{"name": "who", "kind": "secret"}],
        "who": "kranich-5",
        "models": {"m": {"model_name": "PasswordModel", "state": {"value": "falke-123"}}},
        "rule_sets": [{"digest": "x", "hidden": ["bird"]}],
        "bird": "sperber-1",
    }
    learning.take_names(data)
    learning.take(data)
    assert learning.texts == {
        *("hunter-2x", "47114711", "eichel-77", "kranich-5", "falke-123", "sperber-1")
    }


def test_of_a_secret_of_several_lines_each_long_one_is_looked_for():
    learning = Learning(Redactor(None))
    learning.tell("-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG\nab\n")
    assert "MIIEvgIBADANBgkqhkiG" in learning.texts
    assert "ab" not in learning.texts


def test_a_text_is_learnt_as_it_is_and_as_it_is_meant():
    learning = Learning(Redactor(None))
    learning.take_text(r"{'password': 'a\'b&amp;c-d'}")
    assert {"a'b&amp;c-d", r"a\'b&c-d"} <= learning.texts
    learning = Learning(Redactor(None))
    learning.take_text("f(token=my_variable) then ?token=a1b2c3d4")
    assert learning.texts == {"a1b2c3d4"}


def test_magics_leave_python_python():
    assert is_code("%matplotlib inline\n!ls\nx = 1")
    assert not is_code("%%bash\nls -l | wc")
