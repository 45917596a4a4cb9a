"""Folders, accounts and connections are known by their form; what is none of them stays."""

import nbformat
import pytest

import runbook_nb as rb
from runbook_nb.share.machine import Machine

HIDDEN = [
    ("/home/ann/data/x.csv", "~/data/x.csv"),
    ("/Users/ann", "~"),
    ("in /root/.cache", "in ~/.cache"),
    ("C:\\Users\\ann\\x", "~\\x"),
    ("'C:\\\\Users\\\\ann\\\\x'", "'~\\\\x'"),
    ("file:///home/ann/x", "file://~/x"),
    ("/var/folders/ab/cdefg/T/xyz/q", "tmp/q"),
    ("/opt/py/lib/python3.11/site-packages/pandas/core.py", "site-packages/pandas/core.py"),
    ("\x1b[32m/home/ann/x.py\x1b[39m", "\x1b[32m~/x.py\x1b[39m"),
    ("in jupyter/kernel-1f2e3d4c-77.json", "in jupyter/kernel.json"),
    (
        '{"key": "abc-def", "signature_scheme": "hmac"}',
        '{"key": "[REDACTED]", "signature_scheme": "hmac"}',
    ),
]


@pytest.mark.parametrize(("text", "left"), HIDDEN)
def test_what_tells_of_a_machine_goes(text, left):
    machine = Machine()
    assert machine.hide(text) == (left, machine.is_named_in(text))
    assert machine.is_named_in(text)
    assert machine.hide(left) == (left, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("https://x.org/home/ann", "/etc/ssl/certs/ca.pem", "~/x", "./x", "a/home/b"),
        *("\\n\\t\\d+", "homes", "root certificates", "", "1/2"),
    ],
)
def test_what_is_none_stays(text):
    assert Machine().hide(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('File "/opt/app/core/load.py", line 3', 'File "…/load.py", line 3'),
        ("~/p/x.py:4", "…/x.py:4"),
        ("D:\\a\\b\\c.py", "…/c.py"),
        ("\\n\\t x \\d+", "\\n\\t x \\d+"),
        ("see https://x.org/a/b", "see https://x.org/a/b"),
    ],
)
def test_in_a_traceback_only_the_names_of_files_stay(text, left):
    assert Machine().hide_files(text)[0] == left
    assert Machine().hide_files(left) == (left, 0)


def test_the_notebooks_own_folder_is_here(tmp_path):
    folder = tmp_path / "deep" / "project"
    folder.mkdir(parents=True)
    assert Machine(folder).hide(f"read {folder}/rows.csv") == ("read ./rows.csv", 1)


def test_a_cell_in_a_page_is_no_tag():
    cell = "/x/ipykernel_12/34.py:1"
    assert Machine().hide(cell) == ("<cell>:1", 1)
    assert Machine().hide(cell, html=True) == ("&lt;cell&gt;:1", 1)


def test_an_account_at_this_machine_goes(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    monkeypatch.setattr("socket.gethostname", lambda: "box-7")
    assert Machine().hide("ann@box-7:~$ ls, ann@example.org") == (
        "user@machine:~$ ls, ann@example.org",
        1,
    )


@pytest.fixture
def called(monkeypatch):
    def called(user, host):
        monkeypatch.setattr("getpass.getuser", lambda: user)
        monkeypatch.setattr("socket.gethostname", lambda: host)
        return Machine()

    return called


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("annabel ran it on build-17.corp", "user ran it on machine"),
        ("build-17: 3 jobs of annabel.", "machine: 3 jobs of user."),
        ('"annabel"', '"user"'),
        ("<td>annabel</td>", "<td>user</td>"),
        ("annabella, xannabel, annabel-2, build-170", "annabella, xannabel, annabel-2, build-170"),
        ("<annabel>x</annabel> annabel='1'", "<annabel>x</annabel> annabel='1'"),
        ("Annabel", "Annabel"),
    ],
)
def test_the_names_of_this_account_and_machine_go_where_they_stand_alone(called, text, left):
    machine = called("annabel", "build-17.corp")
    assert machine.hide_names(text)[0] == left
    assert machine.hide_names(left) == (left, 0)


@pytest.mark.parametrize(("user", "host"), [("ann", "box-1"), ("jovyan", "localhost"), ("", "")])
def test_a_short_name_and_one_that_anybody_has_stay(called, user, host):
    text = f"{user} on {host}"
    assert called(user, host).hide_names(text) == (text, 0)


def test_names_are_reported_and_stay_in_sources(called, tmp_path):
    called("annabel", "build-17")
    shown = nbformat.v4.new_output("stream", name="stdout", text="annabel at build-17\n")
    cell = nbformat.v4.new_code_cell("who = 'annabel'", outputs=[shown])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    shared = rb.share_notebook(tmp_path / "a.ipynb")
    made = nbformat.read(shared.written, as_version=4).cells[0]
    assert (made.source, made.outputs[0].text) == ("who = 'annabel'", "user at machine\n")
    name = "name of this account or machine, alone"
    found = [(one.action, one.place, one.times) for one in shared.findings if one.what == name]
    assert found == [
        ("replaced", "output 1 of cell 1", 2),
        ("kept", "the source of cell 1", 1),
    ]
    assert rb.share_notebook(shared.written, in_place=True).text == shared.text
