"""Loading playbooks: every source, every problem with its place, nothing dropped in silence."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, PlaybookLoadError
from runbook_nb.playbooks.loader import PlaybookLoader, load_playbook
from runbook_nb.playbooks.sources import BOUNDS

YAML = """\
id: ir
name: Incident response
x-owner: soc
steps:
  - id: detection
    description: Pull the alert.
    expected_tools: [query_siem]
    required_probes:
      - {name: auth events, match: index=auth}
  - id: contain
    description: Isolate the host.
    expected_tools: [isolate_host]
    max_tool_calls: 3
    kind: approval
    x-ticket: {queue: p1}
"""


def step(**more):
    return {"id": "a", "description": "d", **more}


def document(*steps, **more):
    return {"id": "x", "name": "n", "steps": list(steps), **more}


def refused(source, **how):
    with pytest.raises(PlaybookLoadError) as error:
        load_playbook(source, **how)
    return error.value


def problems(source):
    return [(one.code, one.where) for one in refused(source).problems]


# --- sources -----------------------------------------------------------------------------------


@pytest.fixture
def expected():
    return load_playbook(YAML)


def sources(tmp_path):
    as_json = json.dumps(load_playbook(YAML).to_dict())
    for name, data in (
        ("a.yaml", YAML.encode()),
        ("b.YML", b"\xef\xbb\xbf" + YAML.encode()),
        ("c.json", as_json.encode()),
        ("d.json", b"\xef\xbb\xbf" + as_json.encode()),
    ):
        (tmp_path / name).write_bytes(data)
        yield tmp_path / name
        yield str(tmp_path / name)
    yield YAML
    yield "\ufeff" + YAML
    yield YAML.encode()
    yield bytearray(YAML.encode())
    yield as_json
    yield "\n  " + as_json
    yield b"\xef\xbb\xbf" + as_json.encode()
    yield json.loads(as_json)
    yield io.StringIO(YAML)
    yield io.BytesIO(as_json.encode())


def test_a_kind_that_is_nearly_one_is_told_which_was_meant():
    step = {"id": "a", "description": "d", "kind": "approve"}
    with pytest.raises(PlaybookLoadError) as refused:
        load_playbook({"id": "x", "name": "X", "steps": [step, {**step, "id": "b", "kind": 3}]})
    near, far = refused.value.problems
    assert near.fix == "did you mean 'approval'?"
    assert "'approve'" in near.message
    assert far.fix == "use 'manual' or 'approval', or leave it out"


def test_every_source_gives_the_same_playbook(tmp_path, expected):
    for source in sources(tmp_path):
        assert load_playbook(source) == expected
    with (tmp_path / "a.yaml").open("rb") as file:
        assert load_playbook(file) == expected


def test_what_is_a_playbook_already_is_given_back(expected):
    assert load_playbook(expected) is expected


def test_the_loader_has_a_method_for_each_source(tmp_path, expected):
    (tmp_path / "a.yaml").write_text(YAML, "utf-8")
    as_dict = expected.to_dict()
    for loader in (PlaybookLoader, PlaybookLoader(), rb.PlaybookLoader(profile="safe")):
        assert loader.load_file(tmp_path / "a.yaml") == expected
        assert loader.load_yaml_string(YAML) == expected
        assert loader.load_json_string(json.dumps(as_dict)) == expected
        assert loader.load_dict(as_dict) == expected


def test_own_keys_are_kept(expected):
    assert expected.extensions == {"x-owner": "soc"}
    contain = expected.get_step("contain")
    assert contain.extensions == {"x-ticket": {"queue": "p1"}}
    assert contain.kind == "approval"


def test_what_is_handed_over_stays_as_it_is():
    given = document(step(metadata={"k": [1]}))
    before = json.dumps(given)
    book = load_playbook(given)
    book.steps[0].metadata["k"].append(2)
    assert json.dumps(given) == before


def test_a_long_text_is_never_taken_for_a_path():
    text = json.dumps(document(step(description="x" * 5000)))
    assert load_playbook(text).steps[0].description == "x" * 5000


@pytest.mark.parametrize("source", [None, 3, object(), 1.5])
def test_what_holds_no_playbook_is_refused(source):
    error = refused(source)
    assert error.code == "bad_source"
    assert "JSON or YAML text" in error.fix


def test_an_empty_text_is_no_file():
    assert refused("").code == refused(" ").code == "empty"
    assert "JSON or YAML text" in refused("").fix


def test_fields_are_told_in_words_of_ours():
    told = {
        one.where: (one.message, one.fix)
        for one in refused(
            document(
                step(required="maybe", min_tool_calls=1.5, timeout_seconds="soon", validation=[]),
                {"id": 1, "description": None},
                tags="a",
            )
        ).problems
    }
    assert told == {
        "steps[0].required": ("is neither true nor false", "write true or false"),
        "steps[0].min_tool_calls": ("is not a whole number", "write a whole number"),
        "steps[0].timeout_seconds": ("is not a number", "write a number"),
        "steps[0].validation": ("is not a mapping", "write keys with their values"),
        "steps[1].id": ("is not text", "put it in quotes"),
        "steps[1].description": ("is not text", "write a text"),
        "tags": ("is not a list", "write a list"),
    }


def test_a_file_that_is_not_there_is_told_with_its_path(tmp_path):
    error = refused(tmp_path / "no.yaml")
    assert (error.code, error.path) == ("not_found", tmp_path / "no.yaml")
    error = refused("id: x")
    assert error.code == "not_found"
    assert "load_yaml_string" in error.fix
    assert refused("a\0b").code == "not_found"
    assert refused("n" * 5000).code == "not_found"


def test_files_that_cannot_be_read_are_told_with_their_path(tmp_path):
    (tmp_path / "x.txt").write_text(YAML)
    (tmp_path / "dir.yaml").mkdir()
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    for name, code in (
        ("x.txt", "unsupported_suffix"),
        ("dir.yaml", "read_failed"),
        ("bad.yaml", "read_failed"),
    ):
        error = refused(tmp_path / name)
        assert error.code == code
        assert Path(error.path).name == name
    assert refused(tmp_path / "x.txt").fix == "give it the ending .yaml, .yml or .json"
    assert refused(tmp_path / "bad.yaml").fix == "save it as UTF-8"


def test_an_open_file_that_gives_no_text_is_refused():
    class Odd:
        name = 3

        def read(self, size):
            return [size]

    assert refused(Odd()).code == "read_failed"


def test_problems_found_in_a_file_carry_its_path_and_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("name: y\nsteps:\n- id: a\n  descripton: d\n", "utf-8")
    error = refused(path)
    assert (error.path, error.where, error.code) == (path, "s.yaml", "structure")
    found = {one.code: (one.line, one.column, one.where) for one in error.problems}
    assert found["unknown_key"] == (4, 3, "steps[0].descripton")
    assert found["step_missing_field"] == (3, 3, "steps[0].description")
    assert found["missing_field"][0] == 1
    assert error.errors == [str(problem) for problem in error.problems]
    assert "line 4, column 3" in str(error)
    assert "s.yaml" in str(error)


# --- what nobody means -------------------------------------------------------------------------


def test_a_misspelt_key_is_told_with_the_one_that_was_meant():
    error = refused(document(step(expected_tool=["t"]), stricts_sequence=True, zzz=1))
    told = {one.where: one.fix for one in error.problems}
    assert told == {
        "steps[0].expected_tool": "did you mean 'expected_tools'?",
        "stricts_sequence": "did you mean 'strict_sequence'?",
        "zzz": "put it under metadata, or call it 'x-zzz'",
    }


def test_a_probe_has_no_keys_of_its_own():
    probe = {"name": "n", "match": "m", "x-y": 1, "regex": True}
    error = refused(document(step(required_probes=[probe])))
    assert [one.where for one in error.problems] == [
        "steps[0].required_probes[0].x-y",
        "steps[0].required_probes[0].regex",
    ]
    assert error.problems[1].fix == "a probe has name, match and description"


def test_a_key_that_is_no_text_is_refused():
    assert problems({**document(), 3: 1}) == [("unknown_key", None)]
    assert problems(document({**step(), 3: 1})) == [("unknown_key", "steps[0]")]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("id: x\nname: y\nid: z\n", (3, 1)),
        ('{"id": "x", "name": "y",\n "name": "z"}', (2, 2)),
        ("id: x\nname: y\nsteps:\n- id: a\n  id: b\n  description: d\n", (5, 3)),
    ],
)
def test_a_repeated_key_is_refused(text, mark):
    (problem,) = refused(text).problems
    assert (problem.code, problem.line, problem.column) == ("duplicate_key", *mark)


def test_words_and_numbers_of_old_yaml_are_texts():
    book = load_playbook(
        "id: no\nname: 12:30\nversion: 2026-01-02\nsteps:\n- {id: on, description: y}\n"
    )
    assert (book.id, book.name, book.version) == ("no", "12:30", "2026-01-02")
    assert book.steps[0].id == "on"
    told = refused("id: 7\nname: n\nversion: 1.0\n").problems
    assert [(one.code, one.line, one.fix) for one in told] == [
        ("string_type", 1, "put it in quotes"),
        ("string_type", 3, "put it in quotes"),
    ]


def test_ids_that_name_nothing_are_refused():
    bad = {**document(step(id=""), step(id=" ")), "id": ""}
    assert problems(bad) == [
        ("empty_id", "id"),
        ("empty_id", "steps[0].id"),
        ("empty_id", "steps[1].id"),
    ]


def test_ids_that_are_no_text_are_told_as_fields():
    assert problems(document(step(id=["a"]))) == [("string_type", "steps[0].id")]
    assert problems({"id": {}, "name": None}) == [("string_type", "id"), ("string_type", "name")]


@pytest.mark.parametrize(
    ("more", "code", "key"),
    [
        ({"max_tool_calls": 0}, "bad_limit", "max_tool_calls"),
        ({"max_tool_calls": -1}, "bad_limit", "max_tool_calls"),
        ({"min_tool_calls": 3, "max_tool_calls": 2}, "floor_above_cap", "min_tool_calls"),
        ({"min_tool_calls": -1}, "greater_than_equal", "min_tool_calls"),
        ({"timeout_seconds": 0}, "bad_limit", "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "bad_limit", "timeout_seconds"),
        (
            {"required_probes": [{"name": "n", "match": " "}]},
            "blank_match",
            "required_probes[0].match",
        ),
        ({"kind": "manuel"}, "literal_error", "kind"),
        ({"uses": "x"}, "list_type", "uses"),
        ({"hints": ["a", 1]}, "step_field_not_strings", "hints"),
        ({"expected_tools": "t"}, "step_field_not_list", "expected_tools"),
        ({"description": None}, "string_type", "description"),
    ],
)
def test_fields_that_hold_what_they_cannot_are_told(more, code, key):
    assert problems(document(step(**more))) == [(code, f"steps[0].{key}")]
    load_playbook(document(step(min_tool_calls=2, max_tool_calls=2, timeout_seconds=1.5)))


def test_checks_that_cannot_be_read_are_told_with_their_place():
    check = {"name": "auth", "path": "index", "op": "eq", "value": "auth"}
    load_playbook(document(step(checks=[check])))
    text = json.dumps(document(step(checks=[check, {**check, "op": "eqq"}])), indent=1)
    (problem,) = refused(text).problems
    assert (problem.code, problem.where) == ("bad_check", "steps[0].checks[1].op")
    assert "eqq" in text.splitlines()[problem.line - 1]
    assert "'eq'" in problem.fix


def test_a_budget_below_one_is_refused():
    assert problems(document(max_iterations=0)) == [("bad_limit", "max_iterations")]


def test_all_that_is_wrong_is_told_together():
    bad = document(step(), 3, step(max_tool_calls=0), {"id": "b"}, tag=["t"])
    assert problems(bad) == [
        ("unknown_key", "tag"),
        ("step_not_mapping", "steps[1]"),
        ("duplicate_step_id", "steps[2].id"),
        ("step_missing_field", "steps[3].description"),
        ("bad_limit", "steps[2].max_tool_calls"),
    ]
    assert problems({"id": "x", "name": "n", "steps": {"a": 1}}) == [("steps_not_list", "steps")]


def test_steps_beside_groups_are_not_dropped_in_silence():
    assert problems({**document(), "step_groups": []}) == [("unknown_key", "step_groups")]
    assert problems({"id": "x", "name": "n", "step_groups": {}}) == [("unknown_key", "step_groups")]


# --- other formats -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("foreign", "said"),
    [
        ({"id": "x", "version": "playbook.v2", "step_groups": []}, "graph playbook"),
        ({"type": "playbook", "spec_version": "cacao-2.0", "workflow": {}}, "CACAO"),
        ({"arazzo": "1.0.0", "workflows": []}, "Arazzo"),
    ],
)
def test_documents_of_other_formats_are_refused_with_advice(foreign, said):
    error = refused(foreign)
    assert error.code == "foreign_format"
    assert said in error.message
    assert error.fix


def test_a_list_of_plays_is_told_apart():
    assert "Ansible" in refused("- hosts: all\n  tasks: []\n").message
    assert refused("- a\n- b\n").code == "not_mapping"
    assert refused("\n\n").code == "empty"
    assert refused("[]").code == "not_mapping"


def test_a_key_of_graph_playbooks_names_what_stands_for_it():
    (problem,) = refused(document(step(after=["b"]))).problems
    assert "requires" in problem.fix


# --- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["safe", "compat"])
def test_what_is_too_large_or_deep_is_refused(profile, tmp_path):
    deep = '{"id": "x", "name": "n", "metadata": ' + '{"a":' * 60 + "1" + "}" * 60 + "}"
    with pytest.raises(PlaybookLoadError) as error:
        PlaybookLoader(profile=profile).load_json_string(deep)
    assert error.value.code == "too_deep"
    far = '{"id": "x", "name": "n", "metadata": ' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(PlaybookLoadError) as error:
        PlaybookLoader(profile=profile).load_json_string(far)
    assert error.value.code == "too_deep"
    (tmp_path / "big.json").write_text(" " * (BOUNDS.characters + 1), "utf-8")
    assert refused(tmp_path / "big.json", profile=profile).code == "too_large"
    bomb = "id: x\nname: n\nmetadata:\n  a0: &a0 [x, x, x, x, x, x, x, x]\n"
    for n in range(8):
        bomb += f"  a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 8)}]\n"
    with pytest.raises(PlaybookLoadError) as error:
        PlaybookLoader(profile=profile).load_yaml_string(bomb)
    assert error.value.code == "too_large"
    ring = "id: x\nname: n\nmetadata: &m\n  a: *m\n"
    with pytest.raises(PlaybookLoadError):
        PlaybookLoader(profile=profile).load_yaml_string(ring)


def test_more_is_not_read_from_a_file_than_is_allowed():
    class Endless:
        def __init__(self):
            self.asked = []

        def read(self, size):
            self.asked.append(size)
            return b" " * size

    endless = Endless()
    assert refused(endless).code == "too_large"
    assert endless.asked == [BOUNDS.characters + 1]


def test_a_mapping_that_holds_itself_is_refused():
    ring = document()
    ring["metadata"] = {"self": ring}
    assert refused(ring).code == "too_deep"


# --- profiles ----------------------------------------------------------------------------------


def test_the_two_readings_are_named_twice_and_never_mixed():
    typo = document(step(expected_tool=["t"]))
    for how in ({"profile": "compat"}, {"strict": False}, {"strict": False, "profile": "compat"}):
        assert load_playbook(typo, **how).steps[0].expected_tools == []
    for how in ({}, {"profile": "safe"}, {"strict": True}, {"strict": True, "profile": "safe"}):
        assert refused(typo, **how).code == "structure"
    for how in ({"strict": True, "profile": "compat"}, {"strict": False, "profile": "safe"}):
        with pytest.raises(DefinitionError, match="opposite things"):
            load_playbook(typo, **how)
    with pytest.raises(DefinitionError, match="did you mean 'compat'"):
        load_playbook(typo, profile="compt")


def test_under_compat_a_long_text_is_looked_up_as_a_file():
    with pytest.raises(OSError, match="too long"):
        load_playbook(json.dumps(document(name="n" * 300)), profile="compat")


def test_under_compat_only_what_the_format_knows_is_taken():
    book = load_playbook(document(step(kind="manual", checks=3, **{"x-a": 1})), profile="compat")
    assert book.steps[0].kind is None
    assert book.steps[0].extensions == {}


def test_messages_show_no_control_characters():
    error = refused(document(**{"tag\x1b[31m\u202e": 1}))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
