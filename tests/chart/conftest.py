"""What the tests of charts share: modules beside them, and workers that are started once."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

# The helpers beside the tests: modules, not tests, shared with those of other folders.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def processes():
    """Give two processes that many runs share."""
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


@pytest.fixture(scope="session")
def cluster():
    """Give the client of a cluster of two worker processes, which gives up on work at once."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as workers,
        Client(workers) as client,
    ):
        yield client
