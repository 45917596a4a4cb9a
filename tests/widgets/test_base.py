"""What every widget promises: static views, answers, faults that are shown, sizes, no chance."""

import json
import re

import pytest
import traitlets
from untrusted import HINTS, dropped, reading, sanitized

from runbook_nb._view import Card, Data, Prose, Section
from runbook_nb.errors import DefinitionError, Problem
from runbook_nb.render import theme
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.settings import settings
from runbook_nb.widgets import static
from runbook_nb.widgets.base import (
    MAX_CSS,
    MAX_FAULT,
    MAX_JS,
    MAX_STATE,
    WIDGET,
    Widget,
    asked,
    fault_of,
    guarded,
)

HOSTILE = "</style><img src=x onerror=alert(1)>\u202e|\\N"


class Counter(Widget):
    """Counts to a limit."""

    count = traitlets.Int(0).tag(sync=True)

    def __init__(self, name="things", **traits):
        self.name = name
        super().__init__(**traits)
        self.observe(self._counted, "count")

    def view(self):
        said = Prose(text=("counted", Data(value=self.name)))
        return Card(
            kind="Counter",
            name=self.name,
            headline=f"{self.count} counted",
            sections=(Section(label="Said", parts=(said,)),),
        )

    @guarded
    def _counted(self, change):
        if change.new > 3:
            raise DefinitionError("the limit is 3", fix="count less")

    @asked("add")
    def add(self, about):
        self.count += about["more"]
        return {"count": self.count}


class Louder(Counter):
    @asked("shout")
    def shout(self, about):
        return {"said": "!"}


class Broken(Counter):
    def view(self):
        raise RuntimeError("no view")


def state_of(widget):
    return {key: value for key, value in widget.get_state().items() if key != "layout"}


# -- what is shown --------------------------------------------------------------------------------


def test_the_bundle_holds_the_widget_and_what_stands_in_for_it():
    data, metadata = Counter()._repr_mimebundle_()
    assert set(data) == {WIDGET, HTML, TEXT}
    assert set(data[WIDGET]) == {"version_major", "version_minor", "model_id"}
    assert metadata == {}
    assert data[TEXT].splitlines()[0] == "Counter things · 0 counted"


def test_include_and_exclude_are_honoured():
    widget = Counter()
    assert set(widget._repr_mimebundle_(include=[TEXT])[0]) == {TEXT}
    assert set(widget._repr_mimebundle_(exclude=[WIDGET])[0]) == {HTML, TEXT}
    assert set(widget._repr_mimebundle_(include=[WIDGET])[0]) == {WIDGET}


def test_under_the_static_setting_there_is_no_widget_and_no_channel():
    with settings(static=True):
        widget = Counter()
        data, _ = widget._repr_mimebundle_()
        widget.count = 2
        widget.send({"nobody": "hears"})
    assert widget.comm is None
    assert set(data) == {HTML, TEXT}
    # made so, it stays so
    assert set(widget._repr_mimebundle_()[0]) == {HTML, TEXT}


def test_a_widget_shown_under_the_static_setting_shows_its_static_view():
    widget = Counter()
    with settings(static=True):
        assert set(widget._repr_mimebundle_()[0]) == {HTML, TEXT}


def test_the_static_view_follows_the_state():
    widget = Counter()
    widget.count = 3
    data, _ = widget._repr_mimebundle_()
    assert "3 counted" in data[HTML]
    assert data[TEXT].startswith("Counter things · 3 counted")


def test_the_static_view_stands_untrusted():
    html = Counter(HOSTILE)._repr_mimebundle_()[0][HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert "<img" not in html
    assert "\u202e" not in html


def test_showing_never_fails():
    data, _ = Broken()._repr_mimebundle_()
    assert WIDGET in data
    assert "RuntimeError" in data[TEXT]
    assert "RuntimeError" in repr(Broken())


def test_a_view_that_cannot_be_made_leaves_the_words(monkeypatch):
    monkeypatch.setattr("anywidget.AnyWidget._repr_mimebundle_", lambda self: 1 / 0)
    data, _ = Counter()._repr_mimebundle_()
    assert set(data) == {HTML, TEXT}
    assert "no widget: ZeroDivisionError" in data[TEXT]


def test_the_repr_names_no_address():
    assert repr(Counter()) == "<Counter things · 0 counted>"


def test_a_long_line_is_broken_between_words_and_stays_one_where_it_is_printed(monkeypatch):
    line = "Counter things · " + "counted and counted again, " * 9
    monkeypatch.setattr(Counter, "line", lambda self: line.strip())
    text = Counter()._repr_mimebundle_()[0][TEXT]
    assert all(len(one) <= 100 for one in text.splitlines())
    assert " ".join(text.splitlines()[:3]).startswith(line.strip())
    assert "\n" not in repr(Counter())


class Notebook:
    """A shell whose front end keeps what is published, as a notebook does."""

    kernel = object()

    def __init__(self):
        self.outputs, self.updates = [], 0

    def publish(self, data, *, raw, display_id=None, update=False):
        assert raw
        if update:
            (place,) = [n for n, (known, _) in enumerate(self.outputs) if known == display_id]
            self.outputs[place], self.updates = (display_id, data), self.updates + 1
        else:
            self.outputs.append((display_id, data))

    def forms(self):
        return [data for _, data in self.outputs]


@pytest.fixture
def notebook(monkeypatch):
    shell = Notebook()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", shell.publish)
    return shell


def test_a_cell_gets_the_static_view_and_then_the_widget(notebook):
    widget = Counter()
    widget._ipython_display_()
    still, live = notebook.forms()
    assert set(still) == {HTML, TEXT}
    assert set(live) == {WIDGET, TEXT}
    assert live[WIDGET] == widget._repr_mimebundle_()[0][WIDGET]
    assert live[TEXT] == "Counter, live while its kernel runs: run the cell to use it"
    assert re.fullmatch("rb-[0-9a-f]{8}", widget._mark)
    assert still[HTML].startswith(f'<div class="{widget._mark}">')
    assert widget._repr_mimebundle_()[0][HTML] in still[HTML]
    assert still[TEXT] == widget._repr_mimebundle_()[0][TEXT]


def test_the_static_view_in_the_cell_is_the_same_each_time(notebook):
    for _ in range(2):
        Counter()._ipython_display_()
    one, other = notebook.forms()[::2]
    assert one == other
    assert reading(sanitized(one[HTML])) == reading(one[HTML])


def test_what_is_changed_by_hand_is_drawn_anew_where_it_stands(notebook):
    widget = Counter()
    widget._ipython_display_()
    mark = widget._mark
    widget.count = 2
    widget._ipython_display_()
    assert widget._mark == mark  # or the first could not be told from others
    notebook.outputs.pop()
    notebook.outputs.pop()
    widget.count = 3
    assert widget.answer({"ask": "settle", "about": {}}) == {"id": None, "answer": {}}
    still, _ = notebook.forms()
    assert "3 counted" in still[HTML]
    assert mark in still[HTML]
    assert notebook.updates == 1


def test_a_widget_that_no_cell_shows_draws_nothing(notebook):
    Counter().answer({"ask": "settle", "about": {}})
    assert notebook.outputs == []


@pytest.mark.parametrize("why", ["static", "terminal", "no html"])
def test_where_there_is_no_second_output_the_bundle_is_asked_for(notebook, monkeypatch, why):
    widget = Broken() if why == "no html" else Counter()
    if why == "terminal":
        monkeypatch.setattr(Notebook, "kernel", None)
    with settings(static=why == "static"), pytest.raises(NotImplementedError):
        widget._ipython_display_()
    assert notebook.outputs == []
    assert widget._mark == ""


# -- messages -------------------------------------------------------------------------------------


def test_a_message_is_answered_under_its_number():
    widget = Counter()
    said = widget.answer({"ask": "add", "id": "x-1", "about": {"more": 2}})
    assert said == {"id": "x-1", "answer": {"count": 2}}


def test_a_widget_answers_what_its_parents_do():
    assert Louder().answer({"ask": "add", "id": 1, "about": {"more": 1}})["answer"] == {"count": 1}
    assert Louder().answer({"ask": "shout", "id": 2})["answer"] == {"said": "!"}


@pytest.mark.parametrize(
    "message",
    [
        {"ask": "shout", "id": 1},
        {"ask": "_counted", "id": 1},
        {"ask": "add", "id": 1, "about": [1]},
        {"id": 1},
    ],
)
def test_what_is_not_known_is_a_fault_that_says_what_is(message):
    said = Counter().answer(message)
    assert said["id"] == 1
    assert said["fault"]["fix"] == "ask settle, add"


@pytest.mark.parametrize("message", [None, 3, "add", []])
def test_a_message_of_no_known_form_is_a_fault(message):
    assert "fault" in Counter().answer(message)


def test_what_a_handler_raises_is_the_answer():
    said = Counter().answer({"ask": "add", "id": 1, "about": {"more": "two"}})
    assert said["fault"]["what"].startswith("TypeError: ")


def test_the_answer_is_sent(monkeypatch):
    sent = []
    widget = Counter()
    monkeypatch.setattr(widget, "send", sent.append)
    said = {"method": "custom", "content": {"ask": "add", "id": 1, "about": {"more": 1}}}
    widget._handle_msg({"content": {"data": said}, "buffers": []})
    assert sent == [{"id": 1, "answer": {"count": 1}}]


def test_what_an_observer_raises_is_shown_and_taken_back():
    widget = Counter()
    widget.count = 4
    assert widget.fault == {"what": "the limit is 3", "fix": "count less"}
    assert widget.get_state()["fault"] == widget.fault
    widget.count = 1
    assert widget.fault == {}


def test_a_fault_tells_every_problem_and_is_clipped():
    problems = [Problem(message="a", where="x"), Problem(message="b")]
    many = DefinitionError("2 problems", problems=problems)
    assert fault_of(many)["what"] == "2 problems; x: a; b"
    assert len(fault_of(DefinitionError("x" * 9_000))["what"]) <= MAX_FAULT
    assert "\u202e" not in fault_of(ValueError(HOSTILE))["what"]


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


def test_a_fault_that_cannot_be_printed_has_a_name():
    assert fault_of(Unprintable())["what"] == "Unprintable"


# -- sizes and sameness ---------------------------------------------------------------------------


def widgets():
    """Give every class of widget there is in the package."""
    import pkgutil
    from importlib import import_module

    import runbook_nb.widgets

    for module in pkgutil.iter_modules(runbook_nb.widgets.__path__):
        import_module(f"runbook_nb.widgets.{module.name}")
    found, left = {}, [Widget]
    while left:
        for kind in left.pop().__subclasses__():
            left.append(kind)
            if kind.__module__.startswith("runbook_nb.") and kind._esm.__class__ is str:
                found[kind.__qualname__] = kind
    return [*found.values(), Counter]


@pytest.mark.parametrize("kind", widgets(), ids=lambda kind: kind.__name__)
def test_scripts_and_stylesheets_are_small(kind):
    assert len(kind._esm.encode()) <= MAX_JS
    assert len(kind._css.encode()) <= MAX_CSS


@pytest.mark.parametrize("kind", widgets(), ids=lambda kind: kind.__name__)
def test_stylesheets_keep_to_the_widget(kind):
    own = kind._css.removeprefix(theme.tokens())
    for selectors in re.findall(r"([^{}]+)\{", re.sub(r"@[^{}]+\{", "", own)):
        for selector in re.split(r",(?![^(]*\))", selectors):
            assert selector.strip().startswith((".rbnb", ".rbw")), selector
            assert "#" not in selector
    assert "!important" not in own


@pytest.mark.parametrize("kind", widgets(), ids=lambda kind: kind.__name__)
def test_scripts_write_data_as_text(kind):
    markup = ("insertAdjacentHTML", "outerHTML", "document.write", "eval(", "new Function")
    assert not [word for word in markup if word in kind._esm]
    # pictures of our own making, through a parser that runs nothing
    assert "innerHTML" not in kind._esm


def test_the_state_is_small_and_the_same_each_time():
    one, other = state_of(Counter()), state_of(Counter())
    assert one == other
    assert len(json.dumps(one).encode()) <= MAX_STATE


def test_files_are_read_by_plain_names_only():
    with pytest.raises(FileNotFoundError):
        static.script("../base.js")
    with pytest.raises((FileNotFoundError, OSError)):
        static.sheet("none.css")
