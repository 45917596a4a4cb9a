"""Whatever this package shows is confirmed or cannot be checked, for as long as nobody changes it.

The kinds of output are those of `displayables`, which a contract holds complete, so that one which
is added later is met here too.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))
sys.path.insert(0, str(Path(__file__).parents[1] / "render"))

from displayables import SAMPLES, USUAL, frozen, shown_classes
from forging import ANSWERS
from forging import answer as answer_called

import runbook_nb as rb
from runbook_nb.settings import settings
from runbook_nb.share.shown import alike, cards_in, unwrapped
from runbook_nb.share.verify import verify_file
from runbook_nb.share.widgetlines import parted
from runbook_nb.widgets.base import Widget

#: Ways of drawing that anybody may have set.
SET = [
    {},
    {"max_text_rows": 2, "max_table_rows": 3},
    {"max_text_rows": 30, "max_table_rows": 400},
    {"max_cell": 12},
    {"show_refs": True},
    {"mime_json": True},
    {"theme": "dark"},
    {"layout": "none"},
]


def saved(path, *bundles):
    """Save a notebook the ordinary way, each bundle an output of its own."""
    new = nbformat.v4.new_output
    outputs = [new("display_data", data=json.loads(json.dumps(data))) for data in bundles]
    cells = [nbformat.v4.new_code_cell("x", outputs=[each]) for each in outputs]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def wrong(path):
    found = verify_file(path)
    return [claim.sentence for checked in found for claim in checked.contradicted]


def bundle_as_shown(shown):
    data = shown._repr_mimebundle_()
    return data[0] if isinstance(data, tuple) else data


@cache
def live(name):
    return answer_called(name)


def marked(data):
    """Give what a widget with a channel shows: its static view inside a mark for its script."""
    return {**data, "text/html": f'<div class="rb-0ff49849">{data["text/html"]}</div>'}


# --- every kind --------------------------------------------------------------------------------


def test_every_kind_is_met():
    assert set(SAMPLES) == set(shown_classes().values())


def test_an_untouched_output_of_whatever_kind_is_not_contradicted(tmp_path):
    shown = []
    for kind, make in SAMPLES.items():
        with frozen(), settings(layout="pure"):
            data = bundle_as_shown(make(USUAL))
        shown.append(data)
        if issubclass(kind, Widget) and "text/html" in data:
            shown.append(marked(data))
    file = saved(tmp_path / "a.ipynb", *shown)
    assert wrong(file) == []
    carrying = [data for data in shown if "runbook_nb:payload" in data.get("text/html", "")]
    assert len(verify_file(file)) == len(carrying) >= 3


@pytest.mark.parametrize("how", SET, ids=lambda how: "-".join(how) or "usual")
def test_no_setting_makes_an_untouched_answer_contradict_itself(how, tmp_path):
    with frozen(), settings(**{"layout": "pure", "static": True, **how}):
        for number, name in enumerate(("short way", "capped rows", "gaps")):
            answer = live(name)
            drawn = bundle_as_shown(answer)
            explored = bundle_as_shown(answer.explore())
            file = saved(tmp_path / f"{number}.ipynb", drawn, explored, marked(explored))
            assert wrong(file) == [], name


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_may_be_explored(name, tmp_path):
    with settings(layout="pure", static=True):
        explorer = live(name).explore()
        data = [bundle_as_shown(explorer)]
        explorer.step = 0
        data.append(bundle_as_shown(explorer))
    file = saved(tmp_path / "a.ipynb", *data, *map(marked, data))
    assert wrong(file) == []
    rb.share_notebook(file, tmp_path / "shared.ipynb")
    assert wrong(tmp_path / "shared.ipynb") == []


# --- the line of an explorer -------------------------------------------------------------------


@pytest.fixture(scope="module")
def explored():
    with settings(layout="pure", static=True):
        return bundle_as_shown(live("short way").explore("web-3"))


def test_the_line_and_the_looks_of_an_explorer_are_confirmed(explored, tmp_path):
    for data in (explored, marked(explored)):
        [checked] = verify_file(saved(tmp_path / "a.ipynb", data))
        for part in ("explorer", "text/plain", "text/html", "text/html.style", "picture"):
            assert checked[f"output[1].{part}"].status == "confirmed", part
        left = checked["output[1].explorer.row"].because
        assert left == "where an explorer was left is carried nowhere"


@pytest.mark.parametrize(
    ("old", "new", "id_"),
    [
        ("days 12 > 7", "days 13 > 7", "output[1].explorer"),
        ("of 90 ·", "of 91 ·", "output[1].explorer.row"),
        ("Explorer triage", "Explorer others", "output[1].explorer"),
        ("not checked 1", "not checked 0", "output[1].text/plain"),
        ("Envelope triage", "Envelope others", "output[1].text/plain"),
    ],
)
def test_a_word_of_it_that_was_changed_is_found_out(explored, old, new, id_, tmp_path):
    assert old in explored["text/plain"]
    data = {**explored, "text/plain": explored["text/plain"].replace(old, new, 1)}
    [checked] = verify_file(saved(tmp_path / "a.ipynb", data))
    assert [claim.id for claim in checked.contradicted] == [id_]


def test_a_line_that_no_decision_of_the_answer_is_behind_cannot_be_checked(explored, tmp_path):
    line, text = parted(explored["text/plain"], "Envelope")
    told = re.sub(r"· Verdict.*", "· Ran Take the rows", line)
    data = {**explored, "text/plain": f"{told}\n{text}"}
    [checked] = verify_file(saved(tmp_path / "a.ipynb", data))
    assert checked["output[1].explorer"].because == "the row it tells is not in the dossier"


# --- a page that somebody's tool made ----------------------------------------------------------


def page_of(*bundles):
    """Write outputs as a converter of notebooks does, which sorts attributes and quotes anew."""
    made = [alike(data["text/html"]).replace("&quot;", '"') for data in bundles]
    cells = "\n".join(f'<div class="jp-Cell">\n{each}\n</div>' for each in made)
    return f"<!DOCTYPE html><html><body><h1>Notebook</h1>{cells}</body></html>"


@pytest.fixture(scope="module")
def drawn():
    with settings(layout="pure", static=True):
        shown = [live("short way"), live("one row"), live("short way").explore("web-3")]
        return [*map(bundle_as_shown, shown), bundle_as_shown(live("short way").why("web-3"))]


def test_a_page_a_tool_made_of_outputs_is_not_contradicted(drawn, tmp_path):
    page = tmp_path / "a.html"
    for shown in ([drawn[0]], drawn, [marked(drawn[2]), drawn[3]], [drawn[3], drawn[1]]):
        page.write_text(page_of(*shown), encoding="utf-8")
        found = verify_file(page)
        assert wrong(page) == []
        assert len(found) == sum("runbook_nb:payload" in one["text/html"] for one in shown)


def test_one_word_of_such_a_page_is_found_out(drawn, tmp_path):
    page = tmp_path / "a.html"
    page.write_text(page_of(*drawn).replace(">45<", ">54<"), encoding="utf-8")
    told = [[claim.id for claim in one.contradicted] for one in verify_file(page)]
    assert told[0] == ["page[1].text/html.Verdicts"]
    page.write_text(page_of(drawn[0]).replace(">45<", ">54<"), encoding="utf-8")
    assert [claim.id for claim in verify_file(page)[0].contradicted] == ["page.text/html.Verdicts"]


def test_an_answer_may_be_chosen_from_such_a_page(drawn, tmp_path):
    page = tmp_path / "a.html"
    page.write_text(page_of(drawn[0], drawn[1]), encoding="utf-8")
    assert rb.share.hydrate.read_envelope(page, which=1)["result"]["rows_total"] == 1


def test_a_second_answer_in_a_page_of_ours_is_no_second_page(drawn, tmp_path):
    page = live("short way").to_html(tmp_path / "a.html")
    html = page.read_text("utf-8").replace("</body>", f"{drawn[1]['text/html']}</body>")
    page.write_text(html, encoding="utf-8")
    assert wrong(page) != []


def test_what_is_written_otherwise_is_alike_and_what_is_hidden_is_not(drawn):
    html = drawn[0]["text/html"]
    assert alike(alike(html)) == alike(html)
    assert cards_in(alike(html)) == [alike(html)]
    assert alike(html.replace('<details class="', '<details hidden class="', 1)) != alike(html)
    assert unwrapped(marked(drawn[0])["text/html"]) == html
    for other in ("<div class='rb-0ff49849' hidden>", '<div class="rb-0ff49849" hidden>'):
        assert unwrapped(f"{other}{html}</div>") != html
