"""The scripts that make the environment on a machine with nothing but Python."""

import importlib.util
import json

import pytest

WHEEL = "pip-{0}-py3-none-any.whl"


@pytest.fixture(scope="module")
def bootstrap(root):
    spec = importlib.util.spec_from_file_location("bootstrap_pip", root / ".ci/bootstrap_pip.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(version, **other):
    name = WHEEL.format(version)
    return {
        "filename": name,
        "url": f"../../packages/{name}",
        "hashes": {"sha256": f"digest of {version}"},
        "requires-python": ">=3.9",
        **other,
    }


@pytest.mark.parametrize(
    ("requirement", "admitted"),
    [
        ("", True),
        (">=3.9", True),
        (">=3.11.2", True),
        (">=3.12", False),
        (">=3.8,!=3.11.*", False),
        (">=3.8, !=3.9.*, <4", True),
        ("==3.11.*", True),
        ("<3.11", False),
        ("~=3.9", False),
        ("nonsense", False),
    ],
)
def test_a_requirement_on_python_is_read(bootstrap, requirement, admitted):
    assert bootstrap.admits(requirement, (3, 11, 2)) is admitted


def test_the_newest_usable_wheel_of_a_json_index_is_taken(bootstrap):
    page = {
        "files": [
            entry("9.0.3"),
            entry("26.3"),
            entry("26.10"),
            entry("27.0", yanked="broken"),
            entry("28.0", **{"requires-python": ">=3.99"}),
            entry("29.0", hashes={}),
            entry("30.0b1"),
            {**entry("31.0"), "url": "pip-31.0.tar.gz"},
        ]
    }
    found = bootstrap.offers(
        json.dumps(page).encode(), bootstrap.JSON_API, "https://index.example/simple/pip/", (3, 11)
    )
    assert max(found).version == (26, 10)
    assert max(found).sha256 == "digest of 26.10"
    assert max(found).url == "https://index.example/packages/pip-26.10-py3-none-any.whl"


def test_an_index_page_in_html_is_read_alike(bootstrap):
    page = b"""<!DOCTYPE html><html><body>
    <a href="/f/pip-26.2-py3-none-any.whl#sha256=aa" data-requires-python="&gt;=3.9">one</a>
    <a href="/f/pip-26.3-py3-none-any.whl#sha256=bb" data-requires-python="&gt;=3.99">two</a>
    <a href="/f/pip-26.4-py3-none-any.whl#sha256=cc" data-yanked="">three</a>
    <a href="/f/pip-26.5-py3-none-any.whl">four</a>
    </body></html>"""
    base = "https://index.example/simple/pip/"
    (only,) = bootstrap.offers(page, "text/html", base, (3, 11))
    assert only.url == "https://index.example/f/pip-26.2-py3-none-any.whl"
    assert only.sha256 == "aa"


def test_the_index_is_the_one_pip_would_ask(bootstrap, tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "SYSTEM_CONFIGURATION", tmp_path / "none")
    user = tmp_path / "user" / "pip"
    system = tmp_path / "system" / "pip"
    for folder, section, index in ((user, "global", "of-user"), (system, "global", "of-system")):
        folder.mkdir(parents=True)
        (folder / "pip.conf").write_text(f"[{section}]\nindex-url = https://{index}/simple\n")
    places = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path / "system"),
        "XDG_CONFIG_HOME": str(tmp_path / "nothing"),
    }
    assert bootstrap.pip_option("index-url", places) == "https://of-system/simple"
    places["XDG_CONFIG_HOME"] = str(tmp_path / "user")
    assert bootstrap.pip_option("index-url", places) == "https://of-user/simple"
    places["PIP_INDEX_URL"] = "https://of-environment/simple"
    assert bootstrap.pip_option("index-url", places) == "https://of-environment/simple"


def test_configuration_can_be_switched_off(bootstrap):
    assert bootstrap.pip_option("index-url", {"PIP_CONFIG_FILE": "/dev/null"}) is None


def test_a_file_that_does_not_match_its_digest_is_not_run(bootstrap, monkeypatch):
    page = json.dumps({"files": [entry("26.3")]}).encode()

    def fetch(url, _tls, _accept="*/*"):
        return (b"something else" if url.endswith(".whl") else page), bootstrap.JSON_API, url

    monkeypatch.setattr(bootstrap, "fetch", fetch)
    monkeypatch.setattr(bootstrap.subprocess, "run", pytest.fail)
    with pytest.raises(SystemExit, match="not the file the index describes"):
        bootstrap.main("python")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://user:secret@index.example/simple/"])
def test_an_address_that_cannot_be_read_safely_is_refused(bootstrap, url):
    with pytest.raises(SystemExit) as stop:
        bootstrap.fetch(url, None)
    assert "secret" not in str(stop.value)
