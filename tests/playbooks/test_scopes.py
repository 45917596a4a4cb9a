"""Which plan a call belongs to, and what happens when there is no room for one more."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.playbooks.scopes import NO_RUN, Closed, Plans, RunInfo, key_of


class Plan:
    """What a table of plans asks of one."""

    def __init__(self, run):
        self.run = run
        self.is_complete = False


def table(most=2, **more):
    return Plans(Plan, most=most, **more)


def of(plans, key):
    return plans.of(key, lambda: RunInfo(run_id=key)).held


@pytest.mark.parametrize(
    ("scope", "run", "thread", "key"),
    [
        ("run", "r1", None, "r1"),
        ("run", "r1", "t", "r1"),
        ("run", None, "t", NO_RUN),
        ("thread", "r1", "t", "thread:t"),
        ("thread", "r1", None, "r1"),
        ("thread", None, None, NO_RUN),
        ("thread", None, "t", "thread:t"),
        ("agent", "r1", "t", NO_RUN),
        ("run", "", "", ""),
    ],
)
def test_a_key_is_that_of_the_run_the_thread_or_of_all(scope, run, thread, key):
    assert key_of(scope, run, thread) == key


def test_a_thread_and_a_run_of_one_name_share_nothing():
    assert key_of("thread", "t", None) != key_of("thread", None, "t")


def test_what_a_selector_sees_of_a_run_cannot_be_changed():
    told = {"playbook": "ir"}
    run = RunInfo(run_id="r1", metadata=told)
    told["playbook"] = "other"
    assert run.metadata["playbook"] == "ir"
    with pytest.raises(TypeError):
        run.metadata["playbook"] = "other"


# -- the table ---------------------------------------------------------------------------------


def test_a_run_keeps_its_plan_and_shares_it_with_no_other():
    plans = table()
    one, other = of(plans, "r1"), of(plans, "r2")
    assert one is not other
    assert of(plans, "r1") is one
    assert one.run.run_id == "r1"


def test_looking_makes_nothing_and_is_no_use():
    plans = table()
    assert plans.peek("r1") is None
    assert list(plans) == []
    assert plans.latest is None
    of(plans, "r1"), of(plans, "r2")
    plans.peek("r1")
    assert list(plans) == ["r1", "r2"]


def test_under_silence_the_least_recently_used_starts_over():
    plans = table(refuse_evicted=False, spare_live=False)
    first = of(plans, "r1")
    of(plans, "r2"), of(plans, "r1"), of(plans, "r3")
    assert list(plans) == ["r1", "r3"]
    of(plans, "r2")
    assert list(plans) == ["r3", "r2"]
    assert of(plans, "r1") is not first
    assert plans.evicted == 0


def test_finished_plans_leave_before_live_ones():
    plans = table()
    live, done = of(plans, "live"), of(plans, "done")
    done.is_complete = True
    of(plans, "new")
    assert list(plans) == ["live", "new"]
    assert of(plans, "live") is live
    assert plans.evicted == 0


def test_so_do_those_that_were_said_to_have_ended():
    plans = table()
    of(plans, "live"), of(plans, "ended")
    plans.end("ended")
    of(plans, "new")
    assert list(plans) == ["live", "new"]
    assert plans.evicted == 0


def test_a_live_plan_that_had_to_go_is_never_begun_again():
    plans = table()
    of(plans, "r1"), of(plans, "r2"), of(plans, "r3")
    refused = of(plans, "r1")
    assert isinstance(refused, Closed)
    assert refused.code == "plan_evicted"
    assert "r1" in refused.message
    assert "max_runs" in refused.hint
    assert plans.evicted == 1
    assert list(plans) == ["r2", "r3"]
    assert of(plans, "r1") == refused


def test_releasing_a_run_lets_it_begin_anew():
    plans = table()
    of(plans, "r1"), of(plans, "r2"), of(plans, "r3")
    plans.release("r1")
    assert plans.evicted == 0
    assert isinstance(of(plans, "r1"), Plan)
    plans.release("r1")
    assert "r1" not in plans
    assert plans.latest != "r1"


def test_the_newest_never_makes_room_for_itself():
    plans = Plans(lambda run: None, most=1)
    for key in ("r1", "r2"):
        assert of(plans, key) is None
        assert list(plans) == [key]


def test_runs_that_are_not_enforced_leave_before_live_ones():
    made = {"free": None, "shut": Closed(code="selector_failed", message="m", hint="h")}
    plans = Plans(lambda run: made.get(run.run_id, Plan(run)), most=3)
    live = of(plans, "live")
    of(plans, "free"), of(plans, "shut"), of(plans, "a"), of(plans, "b")
    assert list(plans) == ["live", "a", "b"]
    assert of(plans, "live") is live


def test_what_cannot_be_made_is_asked_for_again():
    asked = []

    def make(run):
        asked.append(run)
        if len(asked) == 1:
            raise ValueError("not yet")
        return Plan(run)

    plans = Plans(make, most=2)
    with pytest.raises(ValueError, match="not yet"):
        of(plans, "r1")
    assert isinstance(of(plans, "r1"), Plan)


def test_a_plan_is_made_once_however_many_ask_at_once():
    """Threads of one run wait for its plan; another run's is made meanwhile."""
    slow, asked, gate = "slow", [], threading.Event()

    def make(run):
        asked.append(run.run_id)
        if run.run_id == slow:
            gate.wait(10)
        return Plan(run)

    plans, found = Plans(make, most=8), []
    threads = [threading.Thread(target=lambda: found.append(of(plans, slow))) for _ in range(6)]
    for thread in threads:
        thread.start()
    quick = of(plans, "quick")
    assert quick.run.run_id == "quick"
    gate.set()
    for thread in threads:
        thread.join(10)
    assert len(found) == 6
    assert len({id(plan) for plan in found}) == 1
    assert sorted(asked) == ["quick", slow]


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=40),
    st.integers(1, 4),
)
def test_laws_of_room(uses, most):
    """No live plan is ever lost in silence, and there are never more than are kept."""
    plans, first = table(most=most), {}
    for key, finishes in uses:
        held = of(plans, key)
        assert len(plans) <= most
        if isinstance(held, Closed):
            assert not first[key].is_complete
            continue
        if key in first and first[key] is not held:
            assert first[key].is_complete
        first[key] = held
        held.is_complete = held.is_complete or finishes


@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(1, 4))
def test_under_silence_it_is_a_plain_table_of_the_last_used(uses, most):
    plans, model = table(most=most, refuse_evicted=False, spare_live=False), OrderedDict()
    for key in uses:
        held = of(plans, key)
        known = model.pop(key, None)
        assert (known is held) == (known is not None)
        model[key] = held
        if len(model) > most:
            model.popitem(last=False)
        assert list(plans) == list(model)
