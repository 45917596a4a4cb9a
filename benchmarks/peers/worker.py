"""Runs one peer: reads ``mode n least`` a line, has a turn of it, and says how long a run took.

    python benchmarks/peers/worker.py burr

The first line it says is ``{"version": …, "modes": […]}`` or ``{"missing": why}``. A turn is as
many runs as add up to ``least`` seconds, at least one; a run takes their mean. The clock runs from
the rows to the JSON of the envelope; the verdicts are compared with the bare loop each time.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import sys
import warnings
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from task import SHOWN, bare_loop, counted, envelope_of, rows_of


def main(name: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    heard, out = sys.stdin, sys.stdout
    sys.stdout = sys.stderr  # peers that print do not disturb what is said

    def say(**told: object) -> None:
        print(json.dumps(told), file=out, flush=True)

    start = perf_counter()
    try:
        peer = importlib.import_module(f"peers.{name}")
    except ImportError as missing:
        say(missing=f"{missing.name or missing} is not installed")
        return
    say(
        version=peer.VERSION,
        modes=list(peer.MODES),
        imported=(perf_counter() - start) * 1e3,
        about=(peer.__doc__ or "").strip(),
    )
    forget = getattr(peer, "forget", lambda: None)
    for line in heard:
        mode, n, least = line.rsplit(" ", 2)
        rows = rows_of(int(n))
        expected = dict(zip((row["subject"] for row in rows), bare_loop(rows), strict=True))
        taken: list[float] = []
        gc.collect()
        while sum(taken) < float(least) or not taken:
            forget()
            start = perf_counter()
            verdicts = peer.MODES[mode](rows)
            text = envelope_of(verdicts, counted(verdicts))
            taken.append(perf_counter() - start)
            words = {row["subject"]: row["verdict"] for row in verdicts}
            shown = len(json.loads(text)["verdicts"])
            if words != expected or len(verdicts) != len(rows) or shown != min(SHOWN, len(rows)):
                say(wrong=f"{len(verdicts)} verdicts, {counted(verdicts)}")
                return
            del verdicts
        say(seconds=sum(taken) / len(taken))


if __name__ == "__main__":
    main(sys.argv[1])
