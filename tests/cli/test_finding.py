"""Runbooks by name: what is installed, what stands in a module, and what is said otherwise."""

import sys
from importlib.metadata import EntryPoint

import pytest

import runbook_nb as rb
from runbook_nb.cli import finding
from runbook_nb.cli.finding import find_book, installed_books, open_book, runbook_of, runbooks_in
from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.examples import shipped

MODULE = """
import runbook_nb as rb

@rb.tool
def ages():
    "Read the ages."
    return rb.coverage({"rows": []}, checked=["the inventory"])

def toolbox():
    return rb.Toolbox([ages])

class deep:
    box = toolbox()

def needs(folder):
    return toolbox()

def fails():
    raise OSError("no such share")

def refuses():
    raise rb.errors.DefinitionError("the share is not mounted")

def answers():
    return {"rows": 4}

triage = rb.runbook_as_tool(
    name="triage", description="How old.", result_kind="verdict/age", composed_of=["ages"],
    procedure=lambda tools: rb.flow_chart("ages", lambda scope: None, id="load").build(),
    rules={"name": "age", "version": "v1"},
)

number = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module of somebody's own, where the command is called."""
    (tmp_path / "own_books.py").write_text(MODULE)
    (tmp_path / "broken_books.py").write_text("import nothing_like_it")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in ("own_books", "broken_books"):
        sys.modules.pop(name, None)


@pytest.fixture
def installed(monkeypatch):
    """Entry points that other packages have."""

    def install(*points):
        def entry_points(group):
            return [EntryPoint(name=name, value=value, group=group) for name, value in points]

        monkeypatch.setattr(finding, "entry_points", entry_points)

    return install


def test_what_is_shipped_is_found_whatever_is_installed(installed):
    installed()
    assert [book.name for book in installed_books()] == [book.name for book in shipped()]
    for book in shipped():
        assert find_book(book.name).place == f"{book.module}:toolbox"


def test_everything_shipped_opens_and_holds_a_runbook():
    for book in installed_books():
        if book.package == "runbook-nb":
            assert list(runbooks_in(open_book(book))), book.name


def test_what_others_add_stands_after_it_in_one_order(installed):
    installed(("zeta", "own_books:toolbox"), ("alpha", "own_books:deep.box"))
    names = [book.name for book in installed_books()]
    assert names == [*(book.name for book in shipped()), "alpha", "zeta"]


def test_an_entry_point_that_says_the_same_is_no_second_one(installed):
    installed(("certificates", "runbook_nb.examples.certificates:toolbox"))
    assert [book.name for book in installed_books()].count("certificates") == 1


def test_a_name_that_two_packages_use_is_not_guessed(installed):
    installed(("certificates", "own_books:toolbox"))
    with pytest.raises(DefinitionError, match="own_books:toolbox") as raised:
        find_book("certificates")
    assert raised.value.code == "several_runbooks"


@pytest.mark.parametrize("place", ["own_books:toolbox", "own_books:deep.box", "own_books:ages"])
def test_a_toolbox_is_made_of_what_stands_in_a_module(folder, place):
    box = open_book(find_book(place))
    assert isinstance(box, rb.Toolbox)
    assert [tool.name for tool in box] == ["ages"]


@pytest.mark.parametrize(
    ("place", "kind", "code", "words"),
    [
        ("own_books:toolbx", LoadError, "not_imported", "did you mean 'toolbox'"),
        ("own_books:deep.bx", LoadError, "not_imported", "did you mean 'box'"),
        ("broken_books:box", LoadError, "not_imported", "No module named 'nothing_like_it'"),
        ("absent_books:box", LoadError, "not_imported", "No module named 'absent_books'"),
        ("own_books:needs", LoadError, "no_toolbox", "called without arguments"),
        ("own_books:fails", LoadError, "no_toolbox", "OSError: no such share"),
        ("own_books:refuses", DefinitionError, "bad_definition", "the share is not mounted"),
        ("own_books:number", DefinitionError, "no_toolbox", "is int; name a Toolbox"),
        ("own_books:answers", DefinitionError, "no_toolbox", "gave dict; name a Toolbox"),
        ("own_books:triage", DefinitionError, None, "cannot be called alone"),
        ("own_books:", DefinitionError, "unknown_runbook", "write it as package.module:name"),
        (":toolbox", DefinitionError, "unknown_runbook", "write it as package.module:name"),
        ("own_books:a b", DefinitionError, "unknown_runbook", "write it as package.module:name"),
        ("../own:x", DefinitionError, "unknown_runbook", "write it as package.module:name"),
    ],
)
def test_what_is_no_runbook_says_why(folder, place, kind, code, words):
    with pytest.raises(kind) as raised:
        open_book(find_book(place))
    assert code in (None, raised.value.code)
    assert words in str(raised.value)


def test_the_only_runbook_of_a_toolbox_needs_no_name():
    book = find_book("certificates")
    box = open_book(book)
    assert runbook_of(box, None, book).name == "root_certificates"
    assert runbook_of(box, "certificate_bundle", book).name == "certificate_bundle"
    with pytest.raises(DefinitionError, match="did you mean 'root_certificates'"):
        runbook_of(box, "root_certificate", book)


def test_of_several_one_is_named_and_the_only_tool_needs_no_name(folder):
    book = find_book("own_books:toolbox")
    assert runbook_of(open_book(book), None, book).name == "ages"
    with pytest.raises(DefinitionError, match="holds no tools"):
        runbook_of(rb.Toolbox([]), None, book)
    certificates = list(open_book(find_book("certificates")))
    both = rb.Toolbox([*certificates, *open_book(find_book("incidents"))])
    with pytest.raises(DefinitionError, match="--tool root_certificates") as raised:
        runbook_of(both, None, book)
    assert raised.value.code == "several_runbooks"
    loose = rb.Toolbox([*open_book(book), certificates[0]])
    with pytest.raises(DefinitionError, match="holds 2 tools; say which: --tool ages"):
        runbook_of(loose, None, book)
