"""SKILL.md: what is meant is read, what cannot be read is refused, and the letter stays known."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.playbooks.skillfile import validate_skill_name
from runbook_nb.playbooks.skills import Skill

HEAD = "name: a-skill\ndescription: Use when needed.\n"


def read(fields="", body="Do it.\n", **how):
    return Skill.from_content(f"---\n{HEAD}{fields}---\n{body}", **how)


def refused(fields="", **how):
    with pytest.raises(LoadError) as caught:
        read(fields, **how)
    return caught.value


def both(fields):
    return read(fields), read(fields, profile="compat")


# --- the frame --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"---\n{HEAD}---",
        f"\ufeff---\n{HEAD}---\nbody",
        f"\n\n---\n{HEAD}---\nbody",
    ],
)
def test_a_frame_that_is_meant_is_read_and_by_the_letter_is_none(text):
    assert Skill.from_content(text).name == "a-skill"
    with pytest.raises(ValueError, match="name and description"):
        Skill.from_content(text, profile="compat")


@pytest.mark.parametrize("profile", ["safe", "compat"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no front matter",
        f"---\n{HEAD}",
        f"--\n{HEAD}--\n",
        f"x\n---\n{HEAD}---\n",
        "---\n---\n",
    ],
)
def test_without_a_frame_there_is_no_skill(text, profile):
    with pytest.raises(ValueError, match=r"front matter|cannot be read") as caught:
        Skill.from_content(text, profile=profile)
    assert caught.value.code == "bad_skill"


@pytest.mark.parametrize("profile", ["safe", "compat"])
def test_the_body_is_what_follows_and_may_hold_lines_of_dashes(profile):
    found = read(body="\n# Steps\n---\nDo it.\n---\n", profile=profile)
    assert found.instructions == "# Steps\n---\nDo it.\n---"
    windows = Skill.from_content(f"---\n{HEAD}---\nbody".replace("\n", "\r\n"), profile=profile)
    assert windows.instructions == "body"


def test_a_fault_in_the_front_matter_is_told_with_its_line():
    assert refused("license: [\n").where == "line 5"
    assert "twice" in str(refused("license: a\nlicense: b\n"))
    with pytest.raises(ValueError, match="name and description"):
        read("license: [\n", profile="compat")


@pytest.mark.parametrize("profile", ["safe", "compat"])
def test_fields_that_are_no_mapping_and_probes_that_are_no_list_keep_their_classes(profile):
    with pytest.raises(AttributeError):
        Skill.from_content("---\n- a\n---\n", profile=profile)
    with pytest.raises(TypeError):
        read("required_probes: 5\n", profile=profile)


# --- fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "safe", "compat"),
    [
        ("allowed-tools: a b", ["a", "b"], ["a", "b"]),
        ("allowed-tools: a, b", ["a", "b"], ["a,", "b"]),
        ("allowed-tools: Bash(git add:*), Read", ["Bash(git add:*)", "Read"], None),
        ("allowed_tools: [a]", ["a"], None),
        ("allowed-tools: [a, 3]", ["a", "3"], ["a", "3"]),
        ("allowed-tools: []", [], []),
        ('allowed-tools: ""', [], []),
        ("allowed-tools:", None, None),
        ("license: MIT", None, None),
    ],
)
def test_tools_are_read_in_both_ways(written, safe, compat):
    meant, letter = both(f"{written}\n")
    assert meant.allowed_tools == safe
    if compat is not None or "(" not in written:
        assert letter.allowed_tools == compat


@pytest.mark.parametrize("written", ["{a: 1}", "7", "[a, null]", "[[a]]"])
def test_a_list_of_tools_that_cannot_be_read_is_refused_for_it_would_bind_nothing(written):
    assert refused(f"allowed-tools: {written}\n").problems[0].where == "line 4, allowed-tools"


def test_probes_are_read_from_either_spelling_and_underscores_win():
    for key in ("required_probes", "required-probes"):
        for found in both(f"{key}: [{{name: ' p ', match: 3, description: why}}]\n"):
            (probe,) = found.required_probes
            assert (probe.name, probe.match, probe.description) == ("p", "3", "why")
    for found in both(
        "required-probes: [{name: h, match: z}]\nrequired_probes: [{name: u, match: m}]\n"
    ):
        assert [probe.name for probe in found.required_probes] == ["u"]


@pytest.mark.parametrize("entry", ["text", "{name: p}", "{name: ' ', match: x}", "{match: x}"])
def test_a_probe_that_cannot_be_read_is_dropped_by_the_letter_and_refused_otherwise(entry):
    fields = f"required_probes: [{entry}, {{name: ok, match: x}}]\n"
    assert [probe.name for probe in read(fields, profile="compat").required_probes] == ["ok"]
    assert "required_probes[0]" in refused(fields).problems[0].where


def test_probes_that_are_a_mapping_are_none_by_the_letter_and_refused_otherwise():
    fields = "required_probes: {name: p, match: m}\n"
    assert read(fields, profile="compat").required_probes == []
    assert isinstance(refused(fields), TypeError)


@pytest.mark.parametrize(
    ("fields", "bounds"),
    [
        ("min-tool-calls: 2\nmax_tool_calls: 5", (2, 5)),
        ("min_tool_calls: 0", (0, None)),
        ("min-tool-calls: 1\nmin_tool_calls: 3", (1, None)),
        ("max-tool-calls:", (None, None)),
    ],
)
def test_effort_is_read_in_either_spelling(fields, bounds):
    for found in both(f"{fields}\n"):
        assert (found.min_tool_calls, found.max_tool_calls) == bounds


@pytest.mark.parametrize("written", ["many", "-1", "true", "1.5"])
def test_effort_that_is_no_count_is_nothing_by_the_letter_and_refused_otherwise(written):
    fields = f"min-tool-calls: {written}\n"
    assert read(fields, profile="compat").min_tool_calls is None
    assert refused(fields).problems[0].where == "line 4, min-tool-calls"


def test_metadata_that_is_null_is_kept_by_the_letter():
    meant, letter = both("metadata:\n")
    assert (meant.metadata, letter.metadata) == ({}, None)


@pytest.mark.parametrize("text", ["---\nname: a\n---\n", "---\nname: ''\ndescription: b\n---\n"])
def test_name_and_description_have_to_be_there(text):
    for profile in ("safe", "compat"):
        with pytest.raises(ValueError, match="cannot be read"):
            Skill.from_content(text, profile=profile)


def test_everything_wrong_is_told_together():
    found = refused("allowed-tools: 7\nmin-tool-calls: x\nmetadata: 3\n")
    assert len(found.problems) == 3


# --- strictly ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("alowed-tools: a\n", "did you mean 'allowed-tools'"),
        ("allowed-tools: Fetch(domain:a)\n", "not a bound"),
        ("allowed-tools: a\nallowed_tools: b\n", "keep one"),
        ("required_probes: [{name: a, match: b, mach: c}]\n", "did you mean 'match'"),
    ],
)
def test_read_strictly_more_is_refused(fields, words):
    assert read(fields).name == "a-skill"
    assert words in str(refused(fields, strict=True))


def test_read_strictly_a_name_follows_the_rule_and_its_folder(tmp_path):
    loose = "---\nname: Bad Name!\ndescription: b\n---\nx\n"
    assert Skill.from_content(loose).name == "Bad Name!"
    with pytest.raises(LoadError, match="not a name for a skill"):
        Skill.from_content(loose, strict=True)
    with pytest.raises(LoadError, match="its folder"):
        read(path=tmp_path, strict=True)
    assert read(path=tmp_path / "a-skill", strict=True).path == tmp_path / "a-skill"
    with pytest.raises(LoadError, match="longer than"):
        Skill.from_content(f"---\nname: a\ndescription: {'x' * 1025}\n---\n", strict=True)


def test_names_have_a_rule_of_their_own():
    good = ["a", "log-search", "x1", "a" * 64]
    bad = ["", "A", "a_b", "-a", "a-", "a--b", "a" * 65, "é", "a\n"]
    assert all(map(validate_skill_name, good))
    assert not any(map(validate_skill_name, bad))
    with pytest.raises(DefinitionError):
        validate_skill_name("A", strict=True)


def test_an_unknown_profile_is_refused():
    with pytest.raises(DefinitionError, match="did you mean 'safe'"):
        read(profile="saf")


# --- files ------------------------------------------------------------------------------------


def put(folder, text):
    folder.mkdir()
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def test_a_skill_is_read_from_its_folder_or_its_file(tmp_path):
    folder = put(tmp_path / "a-skill", f"---\n{HEAD}---\nDo ü.\n")
    by_folder, by_file = Skill.from_file(folder), Skill.from_file(folder / "SKILL.md")
    assert by_folder == by_file
    assert (by_folder.instructions, by_folder.path) == ("Do ü.", folder)
    (tmp_path / "other.md").write_text("x", "utf-8")
    for place in (tmp_path, tmp_path / "other.md", tmp_path / "gone"):
        with pytest.raises(FileNotFoundError):
            Skill.from_file(place)


def test_a_folder_of_skills_is_read_by_name_and_broken_ones_only_when_strict(tmp_path):
    put(tmp_path / "b", f"---\n{HEAD}---\n".replace("a-skill", "b"))
    put(tmp_path / "a", f"---\n{HEAD}---\n".replace("a-skill", "a"))
    assert [skill.name for skill in Skill.from_directory(tmp_path, strict=True)] == ["a", "b"]
    put(tmp_path / "c", "broken")
    assert [skill.name for skill in Skill.from_directory(tmp_path)] == ["a", "b"]
    with pytest.raises(LoadError, match="c: there is no front matter"):
        Skill.from_directory(tmp_path, strict=True)


def test_resources_are_the_visible_files_directly_in_their_folders(tmp_path):
    folder = put(tmp_path / "a-skill", f"---\n{HEAD}---\n")
    for name in ("scripts", "references", "other"):
        (folder / name / "inner").mkdir(parents=True)
        (folder / name / f"{name}.txt").write_text("x", "utf-8")
        (folder / name / ".hidden").write_text("x", "utf-8")
    found = Skill.from_file(folder)
    assert found.list_resources() == ["scripts/scripts.txt", "references/references.txt"]
    assert found.list_resources(max_files=1) == ["scripts/scripts.txt"]
    assert read().list_resources() == []


@pytest.mark.parametrize("profile", ["safe", "compat"])
@pytest.mark.parametrize(
    "fields",
    [
        "m0: &m0 [x, x]\n"
        + "".join(f"m{n}: &m{n} [{', '.join([f'*m{n - 1}'] * 9)}]\n" for n in range(1, 12))
        + "allowed-tools: *m11\n",
        "metadata: " + "[" * 60 + "]" * 60 + "\n",
        "metadata: " + "[" * 5000 + "]" * 5000 + "\n",
        "license: " + "x" * 1_050_000 + "\n",
    ],
)
def test_what_repeats_nests_or_goes_on_without_end_is_refused(fields, profile):
    with pytest.raises(LoadError):
        read(fields, profile=profile)


# --- whatever is written ----------------------------------------------------------------------


@given(st.text(), st.text())
def test_any_text_is_a_skill_or_is_refused(front, body):
    for text in (front, f"---\n{front}\n---\n{body}", f"---\n{HEAD}metadata: {front}\n---\n{body}"):
        for strict in (False, True):
            with suppress(LoadError):
                assert Skill.from_content(text, strict=strict).name
