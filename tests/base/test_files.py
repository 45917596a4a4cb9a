"""Files are written whole or not at all."""

import stat
import sys
from pathlib import Path

import pytest

from runbook_nb._files import write_whole


def test_lines_end_as_on_every_other_machine(tmp_path):
    path = write_whole(tmp_path / "a.txt", "é\nb")
    assert path.read_bytes() == b"\xc3\xa9\nb\n"


def test_a_last_line_end_is_not_doubled(tmp_path):
    assert write_whole(tmp_path / "a.txt", "a\n").read_bytes() == b"a\n"


def test_the_path_comes_back_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(write_whole("a.txt", "a")) == "a.txt"


def test_what_cannot_be_written_leaves_the_old_file_and_no_other(tmp_path):
    path = write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"'a\.txt' in; make it first") as caught:
        write_whole(tmp_path / "nowhere" / "a.txt", "a")
    assert caught.value.filename == str(tmp_path / "nowhere")


def test_a_link_keeps_leading_to_what_is_replaced(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new\n"


@pytest.mark.parametrize("name", ["a b.txt", "ü'\"<.txt", "-rf", "n" * 250, ".hidden"])
def test_any_name_the_system_takes_is_taken(tmp_path, name):
    assert write_whole(tmp_path / name, "a").read_text() == "a\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o660])
def test_what_is_replaced_keeps_its_mode_and_what_is_made_takes_that_of_its_source(tmp_path, mode):
    source = tmp_path / "private"
    source.write_text("old")
    source.chmod(mode)
    made = write_whole(tmp_path / "made", "x", like=source)
    assert stat.S_IMODE(made.stat().st_mode) == mode
    assert stat.S_IMODE(write_whole(source, "new").stat().st_mode) == mode
    made.chmod(0o644)
    assert stat.S_IMODE(write_whole(made, "y", like=source).stat().st_mode) == mode


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_what_is_made_of_a_private_file_is_private_before_anything_is_in_it(tmp_path, monkeypatch):
    source, seen = tmp_path / "private", []
    source.write_text("old")
    source.chmod(0o600)
    write = Path.write_text

    def watched(path, *args, **more):
        seen.append(stat.S_IMODE(path.stat().st_mode))
        return write(path, *args, **more)

    monkeypatch.setattr(Path, "write_text", watched)
    write_whole(tmp_path / "made", "x", like=source)
    assert seen == [0o600]
