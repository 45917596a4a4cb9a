"""The task of the benchmarks, small: what it costs is counted here, never timed."""

import sys
from array import array
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def bench():
    """Give the modules of the benchmarks, as their runner imports them."""
    from importlib import import_module

    names = ("goal", "measure", "task", "ours", "chart", "run", "write_docs")
    before = list(sys.path)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        modules = {name: import_module(name) for name in names}
        modules["run"].load()
    finally:
        sys.path[:] = before
    return type("Modules", (), modules)


@pytest.fixture
def held_by():
    """Give what adds up the columns a record keeps of its one fan-out, but for the items."""

    def size(run):
        (fan,) = run.log.fan_outs()
        names = {name for kind in type(fan).__mro__ for name in getattr(kind, "__slots__", ())}
        kept = [getattr(fan, name, None) for name in names - {"items", "log", "stage"}]
        columns = (list, dict, bytes, bytearray, array)
        return sum(sys.getsizeof(one) for one in kept if isinstance(one, columns))

    return size
