"""The pages that are written from the package itself."""

import re

import pytest

import runbook_nb

#: Names with a page of their own.
ELSEWHERE = {"errors", "__version__"}


@pytest.fixture(scope="module")
def pages(generated):
    return generated.reference_pages()


def test_every_public_name_is_documented_once(pages):
    documented = []
    for text in pages.values():
        own = text.partition("## What these give back")[0]
        documented += re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", own, re.M)
    assert sorted(documented) == sorted(set(runbook_nb.__all__) - ELSEWHERE)


def test_a_constant_shows_its_value_and_its_comment(pages):
    assert ".. py:data:: DEFAULT_MAX_ROWS\n   :value: 50\n\n   Rows an answer" in pages["runbook"]


def test_what_public_calls_give_back_exists(generated):
    from importlib import import_module

    for path in (path for paths in generated.GIVEN_BACK.values() for path in paths):
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path


def test_every_error_class_is_found_in_the_source(generated):
    found = generated.error_classes()
    for value in vars(runbook_nb.errors).values():
        if isinstance(value, type) and issubclass(value, runbook_nb.errors.RunbookError):
            assert found[value.__name__].code == value.code


def test_a_class_without_a_code_of_its_own_has_its_bases(generated):
    found = generated.error_classes()
    assert found["MissingKey"].code == "missing_key"
    assert found["RunbookAbsenceSignal"].code is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ToolRefused", "invalid_arguments"),
        ("ToolRefused", "not_permitted"),  # handed on by a helper
        ("PlaybookLoadError", "foreign_format"),  # by a helper of another module
        ("PlaybookLoadError", "structure"),  # one of two
        ("PlaybookLoadError", "validation"),
        ("RuleError", "unreadable"),
        ("LimitReached", "stage_time_limit"),
    ],
)
def test_codes_given_where_an_error_is_raised_are_found(generated, name, code):
    assert code in generated.error_classes()[name].codes


def test_the_errors_page_names_every_code_beside_its_class(generated):
    page = generated.errors_page()
    for one in generated.error_classes().values():
        for code in one.codes:
            assert re.search(rf"^\| `{code}` \|.*\.{one.name}`", page, re.MULTILINE)


def test_the_changelog_shows_what_is_announced_by_kind(generated, tmp_path):
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(
        "# C\n<!-- towncrier release notes start -->\n\n## 0.1\n\nFirst.\n", encoding="utf-8"
    )
    assert "Nothing yet." in generated.changelog_page(tmp_path)
    (tmp_path / "changelog.d" / "+a.fixed.md").write_text("One\nthing.\n", encoding="utf-8")
    page = generated.changelog_page(tmp_path)
    assert "### Fixed\n\n- One\n  thing." in page
    assert page.endswith("## 0.1\n\nFirst.\n")


def test_notebooks_are_brought_when_there_are_any(generated, tmp_path):
    source, target = tmp_path / "notebooks", tmp_path / "docs"
    generated.copy_notebooks(source, target)
    assert not target.exists()
    source.mkdir()
    (source / "00_first.ipynb").write_text("{}", encoding="utf-8")
    generated.copy_notebooks(source, target)
    assert [path.name for path in target.iterdir()] == ["00_first.ipynb"]
    (source / "00_first.ipynb").unlink()
    generated.copy_notebooks(source, target)
    assert list(target.iterdir()) == []


def test_the_notebooks_are_listed_in_order_or_said_to_be_none(generated):
    assert generated.notebooks_page([]) == "# Notebooks\n\nNone yet.\n"
    page = generated.notebooks_page(["01_certificates", "00_first_run"])
    assert "\nnotebooks/00_first_run\nnotebooks/01_certificates\n" in page


def test_an_unchanged_page_is_not_written_again(generated, tmp_path):
    page = tmp_path / "page.md"
    generated.write(page, "a")
    before = page.stat().st_mtime_ns
    generated.write(page, "a")
    assert page.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("html", "counts"),
    [
        ('<script src="https://cdn.example/x.js"></script>', 1),
        ('<link href="//cdn.example/x.css" rel="stylesheet">', 1),
        ('<img alt="a" src="http://x.example/a.png">', 1),
        ('<a href="https://x.example/">a link</a>', 0),
        ('<script src="_static/x.js"></script><img src="data:image/png;base64,AA">', 0),
    ],
)
def test_what_a_page_would_fetch_is_found(generated, html, counts):
    assert len(generated.fetched(html)) == counts
