"""Rule sets in files: one reading for YAML and JSON, every problem with its line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runbook_nb._parsed import write_yaml
from runbook_nb.errors import LoadError, RuleError
from runbook_nb.rules import Rule, RuleSet, loader
from runbook_nb.rules.loader import parse

YAML = """\
# what the team agreed on
name: health-signal
version: v1
rules:
  - when: {age_known: {eq: false}}
    then: declined
    label: "the age signal cannot be read"
  - when:
      age_days: {gt: 7}
      checked.at: {lt: {$date: 2026-01-02}}
    then: unprotected
    unit: {age_days: days}
default: {branch: protected, label: last backup within 7 days}
outside:
  - where: {os: {in: [x, y]}}
    what: hosts on x
    why: the scanner has no data
"""

JSON = """\
{
  "name": "health-signal",
  "version": "v1",
  "rules": [
    {"when": {"age_known": {"eq": false}}, "then": "declined",
     "label": "the age signal cannot be read"},
    {"when": {"age_days": {"gt": 7}, "checked.at": {"lt": {"$date": "2026-01-02"}}},
     "then": "unprotected", "unit": {"age_days": "days"}}
  ],
  "default": {"branch": "protected", "label": "last backup within 7 days"},
  "outside": [
    {"where": {"os": {"in": ["x", "y"]}}, "what": "hosts on x", "why": "the scanner has no data"}
  ]
}
"""


def refused(text, kind="yaml"):
    with pytest.raises(LoadError) as error:
        RuleSet.loads(text, kind)
    return str(error.value)


def test_copies_in_both_formats_have_one_digest():
    one, other = RuleSet.loads(YAML), RuleSet.loads(JSON, "json")
    assert one == other
    assert one.digest == other.digest == RuleSet.from_dict(one.to_dict()).digest
    assert one.rules[1].when["checked.at"]["lt"].isoformat() == "2026-01-02"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("7", 7),
        ("+7", 7),
        ("-0", 0),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("7.", 7.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("0.1", 0.1),
        ("1.2.3", "1.2.3"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("<<", "<<"),
        ("=", "="),
        ("! 7", "7"),
        ("|\n    a\n    b", "a\nb\n"),
        (">-\n    a\n    b", "a b"),
        ("[1, [a, yes]]", [1, ["a", "yes"]]),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(written, value):
    found = parse(f"k: {written}\n", "yaml").value["k"]
    assert found == value
    assert type(found) is type(value)


def test_a_nan_reads_as_nan_and_is_then_refused_as_threshold():
    assert str(parse("k: .nan", "yaml").value["k"]) == "nan"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("# nothing\n", "it is empty"),
        ("a: 1\na: 2\n", "line 2: the key 'a' is there twice"),
        ("a: {b: 1, b: 2}\n", "line 1: the key 'b' is there twice"),
        ("a: &x 1\nb: *x\n", "line 1: anchors and aliases are not read; write the value out"),
        ("a: *x\n", "line 1: anchors and aliases are not read"),
        ("a: !custom 1\n", "line 1: the tag '!custom' is not read; leave the tag out"),
        ("a: !!python/object:os.system 1\n", "is not read"),
        ("a: !!str 7\n", "is not read"),
        ("a: !!set {x}\n", "is not read"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document begins; keep one rule set per file"),
        ("5: a\n", "line 1: the key 5 is not text; put it in quotes"),
        ("true: a\n", "line 1: the key True is not text"),
        ("? [a]\n: 1\n", "line 1: a key is not plain text"),
        ("a: [1\n", "line 2"),
        ("a: b: c\n", "line 1: mapping values are not allowed here"),
        ("a:\n\t- 1\n", "line 2"),
        ("a: \x07\n", "line 1: the character U+0007 is not allowed"),
        ("x: 1\ny: 1e999\n", "line 2: the number 1e999 is too large"),
        ("a: " + "9" * 5000, "line 1: a number has too many digits"),
        ("a: " + "[" * 40 + "]" * 40, "nested deeper than 32 levels"),
        ("[" * 100_000, "nested deeper than 32 levels"),
    ],
)
def test_yaml_that_cannot_be_read_is_told_with_its_line(text, said):
    assert said in refused(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ('{"a": 1,\n "a": 2}', "line 2: the key 'a' is there twice"),
        ('{"a": NaN}', "line 1: a value is missing, or is not JSON"),
        ('{"a": Infinity}', "a value is missing, or is not JSON"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": ' + "9" * 5000 + "}", "a number has too many digits"),
        ('{"a": 1,\n}', "line 2: a key in double quotes is missing"),
        ('{"a" 1}', "a colon is missing"),
        ("{a: 1}", "a key in double quotes is missing"),
        ('{"a": 1 "b": 2}', "a comma or the end of a mapping is missing"),
        ("[1 2]", "a comma or the end of a list is missing"),
        ("[1,]", "a value is missing"),
        ('{"a": 1}\n{"b": 2}', "line 2: there is more after the end"),
        ('{"a": "x\ny"}', "line 1: Invalid control character at"),
        ('{"a": "x', "line 1: Unterminated string starting at"),
        ('{"a": "\\q"}', "Invalid \\escape"),
        ('{"a": 01}', "a comma or the end of a mapping is missing"),
        ("[" * 100_000, "nested deeper than 32 levels"),
    ],
)
def test_json_that_cannot_be_read_is_told_with_its_line(text, said):
    assert said in refused(text, "json")


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, -2.5e3, "\\u00e9\\ud83d\\ude00", true, false, null, {}, []]}', " [ ] ", '"x"', "7"],
)
def test_json_reads_as_the_standard_reader_does(text):
    assert parse(text, "json").value == json.loads(text)


def test_problems_of_the_rules_carry_their_lines_in_yaml():
    text = YAML.replace("gt: 7", "ge: 7").replace("what: hosts on x", 'what: " "')
    with pytest.raises(RuleError) as error:
        RuleSet.loads(text)
    assert [problem.where for problem in error.value.problems] == [
        "line 9, rules[1].when.age_days.ge",
        "line 16, outside[0].what",
    ]


def test_problems_of_the_rules_carry_their_lines_in_json():
    text = JSON.replace('"gt": 7', '"gt": null').replace('"then": "declined"', '"than": "declined"')
    with pytest.raises(RuleError) as error:
        RuleSet.loads(text, "json")
    assert [problem.where for problem in error.value.problems] == [
        "line 5, rules[0].than",
        "line 5, rules[0].then",
        "line 7, rules[1].when.age_days.gt",
    ]


def test_what_is_missing_is_told_at_what_surrounds_it():
    with pytest.raises(RuleError) as error:
        RuleSet.loads("name: r\nrules:\n  - then: x\n")
    assert [problem.where for problem in error.value.problems] == [
        "line 1, version",
        "line 3, rules[0].when",
    ]


def test_a_number_as_version_is_refused_with_its_line():
    with pytest.raises(RuleError, match=r"line 2, version: is a number; put it in quotes"):
        RuleSet.loads("name: r\nversion: 1.0\nrules:\n- when: {a: {eq: 1}}\n  then: x\n")


def test_a_list_is_not_a_rule_set():
    with pytest.raises(RuleError, match="a rule set is a mapping, not a list"):
        RuleSet.loads("- a\n")


def test_an_unknown_format_is_refused():
    assert "did you mean 'yaml'?" in refused("a: 1", "yml")
    assert "use 'yaml' or 'json'" in refused("a: 1", "toml")


def test_only_text_is_read():
    with pytest.raises(LoadError, match="not bytes"):
        RuleSet.loads(b"a: 1")


def test_a_long_text_is_refused(monkeypatch):
    monkeypatch.setattr(loader, "BOUNDS", replace(loader.BOUNDS, characters=10))
    assert "longer than 10 characters" in refused("a: 1234567890")


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "text"), [("r.yaml", YAML), ("r.YML", YAML), ("r.json", JSON)])
def test_files_are_read_by_their_ending(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert RuleSet.load(path) == RuleSet.load(str(path)) == RuleSet.loads(YAML)


def test_a_byte_order_mark_is_no_hindrance(tmp_path):
    (tmp_path / "r.yaml").write_text("\ufeff" + YAML, "utf-8")
    assert RuleSet.load(tmp_path / "r.yaml") == RuleSet.loads(YAML)


def test_problems_name_the_file(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(YAML.replace("gt: 7", "ge: 7"), "utf-8")
    with pytest.raises(RuleError) as error:
        RuleSet.load(path)
    assert "rules.yaml, line 9, rules[1].when.age_days.ge: is not an operator" in str(error.value)
    path.write_text("a: [", "utf-8")
    with pytest.raises(LoadError, match=r"rules\.yaml cannot be read: line 1"):
        RuleSet.load(path)


def test_files_that_cannot_be_read_are_told(tmp_path, monkeypatch):
    with pytest.raises(LoadError, match=r"give it the ending \.yaml"):
        RuleSet.load(tmp_path / "rules.txt")
    with pytest.raises(LoadError, match=r"cannot read 'no\.yaml': No such file"):
        RuleSet.load(tmp_path / "no.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LoadError, match="is not UTF-8 text"):
        RuleSet.load(tmp_path / "bad.yaml")
    (tmp_path / "big.json").write_text("x" * 100, "utf-8")
    monkeypatch.setattr(loader, "BOUNDS", replace(loader.BOUNDS, characters=10))
    with pytest.raises(LoadError, match="is too large"):
        RuleSet.load(tmp_path / "big.json")


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "1e3", "0o7", "0x1", "12:30", "2026-01-02", "null", "~", "", "7", ".5", "a: b",
     "- a", "#x", "é👍", "a\nb", " a ", "\n", "a\r\n b", "\x85", "\u2028", "\ufeffx", "@x", "true",
     "<<", "=", "!x", "*x", "&x", "\x1b[31m", "a " * 100],
)  # fmt: skip
def test_texts_stay_texts_for_every_reader(text):
    import yaml

    written = write_yaml({"k": text})
    assert parse(written, "yaml").value == {"k": text}
    assert yaml.safe_load(written) == {"k": text}


def test_the_yaml_form_is_stable_and_readable():
    rules = RuleSet(
        "r", "1", [Rule({"age": {"gt": 7.5}, "os": {"in": ["x", "no"]}}, "old", "old: é", "days")]
    )
    assert rules.to_yaml() == (
        "name: r\n"
        "version: '1'\n"
        "rules:\n"
        "- when:\n"
        "    age:\n"
        "      gt: 7.5\n"
        "    os:\n"
        "      in:\n"
        "      - x\n"
        "      - 'no'\n"
        "  then: old\n"
        "  label: 'old: é'\n"
        "  unit: days\n"
        "unreadable:\n"
        "  branch: declined\n"
        "  label: a value the rules need could not be read\n"
    )


def test_the_same_object_twice_is_written_twice():
    shared = ["x"]
    rules = RuleSet("r", "1", [Rule({"a": {"in": shared}, "b": {"in": shared}}, "x")])
    assert "&" not in rules.to_yaml()
    assert RuleSet.loads(rules.to_yaml()) == rules


def test_the_json_form_is_indented_and_keeps_letters():
    rules = RuleSet("é", "1", [Rule({"a": {"eq": 1}}, "x")])
    assert rules.to_json().startswith('{\n  "name": "é",\n')
    assert json.loads(rules.to_json()) == rules.to_dict()
