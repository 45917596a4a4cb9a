"""Where the documentation is, and what writes its generated pages."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def generated():
    spec = importlib.util.spec_from_file_location("docs_generated", ROOT / "docs/_ext/generated.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
