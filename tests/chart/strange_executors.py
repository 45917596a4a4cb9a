"""Executors shaped like those of `concurrent.futures` that do what none of them should."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

#: What a branch calls that is to make trouble where it is.
PRESSED: Callable[[], Any] = bool


class Immediate(Executor):
    """Runs what it is given in the thread that gives it, before `submit` returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        settle(future, fn, args)
        return future


class Backwards(Executor):
    """Runs what came last first, in a thread of its own, and only when two wait or none follows."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Any, Any]] = []
        self.news = threading.Condition()
        self.over = False
        self.order: list[int] = []
        self.count = 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self.news:
            self.waiting.append((future, fn, (self.count, args)))
            self.count += 1
            self.news.notify()
        return future

    def work(self) -> None:
        while True:
            with self.news:
                self.news.wait_for(lambda: self.waiting or self.over)
                if self.over:
                    return
                self.news.wait(0.01)  # let more come, to have something to turn around
                future, fn, (number, args) = self.waiting.pop()
            self.order.append(number)
            settle(future, fn, args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self.news:
            self.over = True
            self.news.notify()
        self.thread.join()


class Failing(Executor):
    """Does with every piece of work from the n-th on what it is told to do."""

    def __init__(self, first: int, instead: Callable[[Future[Any]], Any]) -> None:
        self.first = first
        self.instead = instead
        self.count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count += 1
        if self.count > self.first:
            self.instead(future)
        else:
            settle(future, fn, args)
        return future


def settle(future: Future[Any], fn: Callable[..., Any], args: Any) -> None:
    """Run a function and put what comes of it into a future."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(fn(*args))
    except BaseException as error:
        future.set_exception(error)
