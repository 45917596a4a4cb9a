"""What a reader installs is what the checkout holds."""

import subprocess
import sys
import zipfile

import pytest


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(root, wheel):
    check = [sys.executable, str(root / ".ci" / "check_wheel.py"), str(wheel)]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_is_typed_and_has_the_command(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
        commands = content.read(entry_points).decode()
    assert "runbook_nb/py.typed" in names
    assert "runbook-nb = runbook_nb.cli.main:main" in commands


def test_the_version_is_written_once(wheel):
    import runbook_nb

    assert wheel.name.startswith(f"runbook_nb-{runbook_nb.__version__}-")
