"""What a file carries is checked, and what it shows is held against what it carries.

The law: change one leaf of the answer a file carries, one cell of a table it shows or one text of
its picture, and a claim is contradicted, unless it could not be checked before.
"""

import base64
import copy
import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_test
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))

from forging import ANSWERS, POSTURE, answer, changed, leaves, missed, others

import runbook_nb as rb
from runbook_nb.render.bundle import bundle_of
from runbook_nb.render.embed import read_embedded
from runbook_nb.settings import settings
from runbook_nb.share.travelling import NAME, filed_name, written_form
from runbook_nb.share.verify import verify_file

_COMMENT = re.compile(r"<!--runbook_nb:payload/1 .*?-->")


def comment(payload):
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    packed = base64.b64encode(text).decode()
    return f"<!--runbook_nb:payload/1 sha-256:{hashlib.sha256(text).hexdigest()} {packed}-->"


@cache
def live(name):
    return answer(name)


@cache
def bundled(name):
    with settings(layout="pure"):
        return bundle_of(live(name))[0]


def saved(path, *bundles):
    """Save a notebook the ordinary way, with one output per bundle."""
    cells = [
        nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data=data)])
        for data in bundles
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def one(path, **more):
    [checked] = verify_file(path, **more)
    return checked


def ids(checked):
    return [claim.id for claim in checked.contradicted]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("verified")


@pytest.fixture
def exported(tmp_path):
    return live("short way").to_notebook(tmp_path / "answer.ipynb")


# --- untouched ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_an_untouched_file_has_no_contradicted_claim(name, tmp_path):
    envelope = live(name)
    with settings(layout="pure"):
        files = [
            envelope.to_notebook(tmp_path / "a.ipynb"),
            envelope.to_html(tmp_path / "a.html"),
            saved(tmp_path / "b.ipynb", bundled(name)),
        ]
    files.append(tmp_path / "c.json")
    files[-1].write_text(envelope.to_json(dossier=True), encoding="utf-8")
    for file in files:
        assert [claim.sentence for claim in one(file).contradicted] == [], file


@pytest.mark.parametrize("name", ["short way", "capped rows", "alone", "outside", "ranked rows"])
def test_an_output_is_drawn_anew_to_the_byte(name, tmp_path):
    checked = one(saved(tmp_path / "b.ipynb", bundled(name)))
    for part in ("text/plain", "text/html", "text/html.style", "walk", "picture"):
        assert checked[f"output[1].{part}"].status == "confirmed", part
    assert checked["output[1].picture"].basis == "the same picture, drawn anew to the byte"


@pytest.mark.parametrize("name", ["gaps", "nested", "resumed"])
def test_a_path_that_a_copy_does_not_tell_cannot_be_checked(name, tmp_path):
    checked = one(saved(tmp_path / "b.ipynb", bundled(name)))
    assert checked["output[1].walk"].because == "the path that was taken is not carried"
    assert checked["output[1].picture"].status == "cannot be checked"
    assert checked["output[1].text/html"].status == "confirmed"


def test_with_a_recording_every_path_is_drawn_anew(tmp_path):
    file = saved(tmp_path / "b.ipynb", bundled("gaps"))
    checked = one(file, recording=live("gaps").recording())
    assert checked["output[1].walk"].status == "confirmed"
    assert checked["output[1].picture"].status == "confirmed"


def test_other_settings_draw_the_same_answer(tmp_path):
    envelope = answer("capped rows")
    with settings(layout="pure", max_table_rows=7, max_text_rows=3):
        data = bundle_of(envelope)[0]
    checked = one(saved(tmp_path / "b.ipynb", data))
    assert checked.ok, ids(checked)


def test_without_a_picture_the_rest_is_checked(tmp_path):
    with settings(layout="none"):
        data = bundle_of(answer("short way"))[0]
    checked = one(saved(tmp_path / "b.ipynb", data))
    assert checked.ok, [claim.sentence for claim in checked.contradicted]
    assert "output[1].picture" not in [claim.id for claim in checked]


def test_a_notebook_that_carries_its_walk_redeems_it_from_itself(tmp_path):
    box = rb.Toolbox([])
    rows = [{"host": "a", "known": True, "days": 3, "tier": "a"}]
    envelope = rb.triage(rows, POSTURE, subject="host", source="one row", toolbox=box)
    checked = one(envelope.to_notebook(tmp_path / "a.ipynb"))
    assert checked["ticket.walk"].basis == "what the store holds"
    assert checked["form.same"].status == "confirmed"


@pytest.mark.parametrize("name", ["short way", "gaps", "hidden", "functions"])
def test_a_notebook_that_was_made_safe_to_hand_on_has_no_contradicted_claim(name, tmp_path):
    for number, file in enumerate(
        [
            saved(tmp_path / "saved.ipynb", bundled(name)),
            live(name).to_notebook(tmp_path / "exported.ipynb"),
        ]
    ):
        shared = tmp_path / f"shared{number}.ipynb"
        rb.share_notebook(file, shared, values=["web-3"])
        checked = one(shared)
        assert [claim.sentence for claim in checked.contradicted] == [], file
        assert checked["form.metadata"].status == "confirmed"


def test_names_that_were_hidden_later_cannot_be_checked(tmp_path):
    shared = tmp_path / "shared.ipynb"
    file = saved(tmp_path / "saved.ipynb", bundled("short way"))
    rb.share_notebook(file, shared, redact={"keys": ("host",)})
    checked = one(shared)
    assert [claim.sentence for claim in checked.contradicted] == []
    assert checked["subject.name"].because == "hidden"


# --- what is carried ---------------------------------------------------------------------------


def test_a_file_that_carries_nothing_gives_nothing(tmp_path):
    assert verify_file(saved(tmp_path / "a.ipynb", {"text/plain": "1"})) == ()
    page = tmp_path / "a.html"
    page.write_text("<p>nothing</p>", encoding="utf-8")
    assert verify_file(page) == ()
    other = tmp_path / "a.json"
    other.write_text('{"rows": 3}', encoding="utf-8")
    assert verify_file(other) == ()


def test_what_is_no_file_of_the_kind_is_refused(tmp_path):
    with pytest.raises(rb.errors.LoadError, match=r"cannot be read"):
        verify_file(tmp_path / "none.ipynb")
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    with pytest.raises(rb.errors.LoadError, match=r"no file an answer can be read from"):
        verify_file(tmp_path / "a.txt")


def test_a_notebook_of_several_answers_gives_one_verification_each(tmp_path):
    found = verify_file(
        saved(tmp_path / "b.ipynb", bundled("one row"), {"text/plain": "3"}, bundled("alone"))
    )
    assert [checked.name for checked in found] == [
        "triage in output 1 of cell 1",
        "one in output 1 of cell 3",
    ]
    assert found[0]["outputs"].claimed == "1 other output: output 1 of cell 2"
    assert found[1]["output[3].text/plain"].status == "confirmed"


def test_what_was_printed_is_no_answer_and_is_named(exported):
    assert "outputs" not in [claim.id for claim in one(exported)]
    document = nbformat.read(exported, as_version=4)
    new = nbformat.v4.new_output
    document.cells[1].outputs += [
        new("stream", name="stdout", text="all 5 hosts are fine\n"),
        new("error", ename="KeyError", evalue="host", traceback=[]),
    ]
    nbformat.write(document, exported)
    checked = one(exported)
    assert checked.ok
    told = "2 other outputs: output 2 of cell 2 and output 3 of cell 2"
    assert checked["outputs"].claimed == told


def test_a_damaged_form_is_contradicted_and_the_other_is_checked(exported):
    text = exported.read_text(encoding="utf-8")
    found = _COMMENT.search(text)
    broken = found[0][:200] + ("A" if found[0][200] != "A" else "B") + found[0][201:]
    exported.write_text(text.replace(found[0], broken), encoding="utf-8")
    checked = one(exported)
    assert ids(checked) == ["form.comment"]
    assert checked["counts.rows_total"].status == "confirmed"


def test_a_damaged_answer_alone_is_contradicted(tmp_path):
    html = _COMMENT.sub(
        "<!--runbook_nb:payload/1 sha-256:00 AA-->", bundled("one row")["text/html"]
    )
    checked = one(saved(tmp_path / "b.ipynb", {"text/html": html}))
    assert ids(checked) == ["form.comment"]
    assert len(checked) == 1


def forged_comment(name, place, value):
    html = bundled(name)["text/html"]
    payload = changed(read_embedded(html), place, value)
    return {**bundled(name), "text/html": _COMMENT.sub(lambda _: comment(payload), html)}


def test_an_answer_that_cannot_be_read_any_more_is_contradicted(tmp_path):
    data = forged_comment("one row", ("envelope", "dossier", "subjects", 0, "decision", "rules"), 9)
    checked = one(saved(tmp_path / "b.ipynb", data))
    assert ids(checked) == ["form"]


def test_how_much_is_said_to_be_carried_is_counted(tmp_path):
    data = forged_comment("one row", ("carried", "rows", 0), 2)
    assert ids(one(saved(tmp_path / "b.ipynb", data))) == ["form.carried"]


def test_two_forms_in_one_output_must_say_the_same(exported):
    document = json.loads(exported.read_text(encoding="utf-8"))
    metadata = document["cells"][1]["outputs"][0]["metadata"][NAME]
    payload = json.loads(metadata["payload"])
    payload["envelope"]["af_coverage"]["checked"][0]["what"] = "much more"
    forged = written_form(payload, metadata.get("filed", {}), {})
    document["cells"][1]["outputs"][0]["metadata"][NAME] = forged
    exported.write_text(json.dumps(document), encoding="utf-8")
    found = ids(one(exported))
    assert "form.same" in found
    assert "output[2].text/html.Coverage" in found


def test_the_json_form_is_held_against_the_answer_too(tmp_path):
    with settings(layout="pure", mime_json=True):
        data = bundle_of(answer("short way"))[0]
    kind = next(name for name in data if name.endswith("+json"))
    assert one(saved(tmp_path / "b.ipynb", data))["output[1].json"].status == "confirmed"
    data = copy.deepcopy(data)
    data[kind]["envelope"]["result"]["rows_total"] = 6
    assert ids(one(saved(tmp_path / "c.ipynb", data))) == ["output[1].json"]


# --- what is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "old", "new", "id_"),
    [
        ("text/html", ">45<", ">46<", "output[1].text/html.Verdicts"),
        ("text/html", "1 fresh", "2 fresh", "output[1].text/html.part 2"),
        ("text/html", "within a week", "within a year", "output[1].text/html.Rules"),
        ("text/html", "Not checked (1)", "Not checked (0)", "output[1].text/html.Coverage"),
        ("text/html", ", 5 of 5 done", ", 4 of 5 done", "output[1].walk"),
        ("text/plain", "days 45", "days 46", "output[1].text/plain"),
        ("text/plain", "not checked 1", "not checked 0", "output[1].text/plain"),
    ],
)
def test_a_word_that_is_shown_otherwise_is_found_out(kind, old, new, id_, tmp_path):
    data = bundled("short way")
    assert old in data[kind]
    data = {**data, kind: data[kind].replace(old, new, 1)}
    checked = one(saved(tmp_path / "b.ipynb", data))
    assert ids(checked) == [id_]
    assert checked[id_].found != checked[id_].expected


def test_a_section_that_was_taken_out_is_found_out(tmp_path):
    html = bundled("short way")["text/html"]
    start = html.index("<strong", html.index("<strong", html.index("Coverage") - 200))
    begin = html.rindex('<div class="rb-sec"', 0, start)
    end = html.index('<div class="rb-sec"', start)
    data = {**bundled("short way"), "text/html": html[:begin] + html[end:]}
    assert ids(one(saved(tmp_path / "b.ipynb", data))) == ["output[1].text/html.parts"]


def test_what_only_style_hides_is_named(tmp_path):
    html = bundled("short way")["text/html"].replace("<style>", "<style>.rb-sec{display:none}", 1)
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), "text/html": html}))
    assert checked.ok
    assert "may be hidden by style" in checked["output[1].text/html.style"].because


@pytest.mark.parametrize("name", ["short way", "outside", "long way", "never there"])
def test_cells_that_were_cut_otherwise_are_drawn_anew(name, tmp_path):
    with settings(layout="pure", max_cell=20):
        data = bundle_of(answer(name))[0]
    assert data["text/html"] != bundled(name)["text/html"]
    assert ids(one(saved(tmp_path / "b.ipynb", data))) == []
    shorter = data["text/html"].replace("within a week", "within a day", 1)
    if shorter != data["text/html"]:
        assert ids(one(saved(tmp_path / "b.ipynb", {**data, "text/html": shorter}))) != []


def at_the_end_of_the_card(html, text):
    end = html.rindex("</div>")
    return html[:end] + text + html[end:]


@pytest.mark.parametrize(
    "forge",
    [
        lambda html: "<h1>All 5 hosts are fresh</h1>" + html,
        lambda html: html + "All 5 hosts are fresh",
        lambda html: f"<h1>All 5 hosts are fresh</h1><div hidden>{html}</div>",
        lambda html: f"<template>{html}</template>All 5 hosts are fresh",
        lambda html: at_the_end_of_the_card(html, "All 5 hosts are fresh"),
        lambda html: at_the_end_of_the_card(html, "<!-->All 5 hosts are fresh<!-- -->"),
        lambda html: at_the_end_of_the_card(html, '<img alt="All 5 hosts are fresh" src="data:,">'),
    ],
)
def test_what_stands_beside_the_answer_in_its_output_is_found_out(forge, tmp_path):
    html = forge(bundled("short way")["text/html"])
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), "text/html": html}))
    assert ids(checked) == ["output[1].text/html.beside"]
    assert "All 5 hosts are fresh" in checked["output[1].text/html.beside"].found


def test_a_card_that_is_hidden_by_its_own_looks_is_named(tmp_path):
    html = bundled("short way")["text/html"].replace('class="rbnb"', 'class="rbnb" hidden', 1)
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), "text/html": html}))
    assert checked["output[1].text/html.style"].status == "cannot be checked"


@pytest.mark.parametrize("where", ["Walk", "Rules"])
def test_a_picture_that_was_added_to_a_part_is_found_out(where, tmp_path):
    html = bundled("short way")["text/html"]
    at = html.index("</strong>", html.index(f">{where}</strong>")) + len("</strong>")
    forged = html[:at] + '<img alt="all fresh" src="data:,">' + html[at:]
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), "text/html": forged}))
    part = "picture" if where == "Walk" else f"text/html.{where}"
    assert ids(checked) == [f"output[1].{part}"]


def test_a_form_that_no_answer_is_shown_in_is_named(tmp_path):
    more = {"text/markdown": "# All 5 hosts are fresh"}
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), **more}))
    assert checked["output[1].text/markdown"].status == "cannot be checked"


def test_tables_that_were_cut_as_their_headings_say_are_drawn_anew(tmp_path):
    for name, rows, said in (("nothing to judge", 1, "1 of 2 shown"), ("one row", 2, "old")):
        with settings(layout="pure", max_table_rows=rows, max_text_rows=rows):
            data = bundle_of(answer(name))[0]
        assert ids(one(saved(tmp_path / "b.ipynb", data))) == []
        assert said in data["text/html"]


def redrawn(html, change):
    """Change the texts of the picture in an output."""
    found = re.search(r'data:image/svg\+xml;base64,([^"]*)', html)
    svg = base64.b64decode(found[1]).decode()
    packed = base64.b64encode(change(svg).encode()).decode()
    return html.replace(found[0], f"data:image/svg+xml;base64,{packed}")


def test_a_text_of_the_picture_that_says_otherwise_is_found_out(tmp_path):
    html = bundled("short way")["text/html"]
    forged = redrawn(html, lambda svg: svg.replace("Judge each row", "Judge some rows"))
    checked = one(saved(tmp_path / "b.ipynb", {"text/html": forged}))
    assert ids(checked) == ["output[1].picture"]
    assert "Judge some rows" in checked["output[1].picture"].found


def test_a_picture_by_another_engine_is_held_to_its_texts(tmp_path):
    html = bundled("short way")["text/html"]
    moved = redrawn(html, lambda svg: svg.replace(' x="', ' x="1', 1))
    checked = one(saved(tmp_path / "b.ipynb", {"text/html": moved}))
    assert checked["output[1].picture"].basis == "the texts of the picture, drawn anew"
    assert checked["output[1].picture.lines"].status == "cannot be checked"


def test_an_explanation_of_a_row_is_explained_anew(exported):
    assert one(exported)["output[4]"].status == "confirmed"
    text = exported.read_text(encoding="utf-8")
    cut = text.index("envelope.why(row=0)")
    tail = text[: text.rindex("Decision web-1", 0, cut)] if cut < 0 else text
    forged = tail.replace("fresh by default", "old by default")
    assert forged != text
    exported.write_text(forged, encoding="utf-8")
    assert "output[4]" in ids(one(exported))


def test_an_explanation_of_an_answer_that_is_not_carried_is_no_contradiction(tmp_path):
    other = rb.triage([{"host": "web-1", "known": True, "days": 8, "tier": "a"}], POSTURE,
                      subject="host", source="a day later")  # fmt: skip
    cards = [bundle_of(other.why("web-1"))[0], bundle_of(rb.decide({"days": 99}, POSTURE))[0]]
    checked = one(saved(tmp_path / "b.ipynb", bundled("short way"), *cards))
    assert ids(checked) == []
    for number in (2, 3):
        assert "may be of one that is not carried" in checked[f"output[{number}]"].because


def test_what_stands_beside_the_answer_on_its_page_is_found_out(tmp_path):
    page = live("short way").to_html(tmp_path / "a.html")
    text = page.read_text(encoding="utf-8")
    for old, new in (("<h1>Report of triage", "<h1>All 5 hosts are fresh"), ("</main>", "Fine")):
        page.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert ids(one(page)) == ["page.text/html.beside"]


def test_a_page_somebody_else_made_around_an_output_is_not_held_against_it(tmp_path):
    page = tmp_path / "a.html"
    html = bundled("short way")["text/html"]
    page.write_text(f"<html><body><h1>My notebook</h1>{html}</body></html>", encoding="utf-8")
    checked = one(page)
    assert ids(checked) == []
    assert checked["page.text/html.beside"].status == "cannot be checked"


def test_a_page_is_drawn_anew(tmp_path):
    with settings(layout="pure"):
        page = live("short way").to_html(tmp_path / "a.html")
    checked = one(page)
    assert checked["page.text/html"].status == "confirmed"
    assert checked["page.picture"].status == "confirmed"
    page.write_text(page.read_text(encoding="utf-8").replace(">45<", ">54<"), encoding="utf-8")
    assert ids(one(page)) == ["page.text/html.Verdicts"]


def test_the_call_and_the_tickets_on_a_page_are_those_of_its_answer(filed, tmp_path):
    page = filed.to_html(tmp_path / "a.html")
    text = page.read_text("utf-8")
    checked = one(page)
    for part, term in (("call", "Call"), ("walk", "Walk"), ("recording", "Recording")):
        assert checked[f"page.{part}.id"].status == "confirmed"
        [said] = re.findall(rf"<dt>{term}</dt> <dd>(\S+)</dd>", text)
        for forged in (f"<dd>{said}ZZ</dd>", "<dd></dd>"):
            page.write_text(text.replace(f"<dd>{said}</dd>", forged), encoding="utf-8")
            assert ids(one(page)) == [f"page.{part}.id"]
        page.write_text(text.replace(f"<dt>{term}</dt> <dd>{said}</dd>\n", ""), encoding="utf-8")
        assert ids(one(page)) == [f"page.{part}.id"]


# --- the law -----------------------------------------------------------------------------------


@settings_of_test(max_examples=25, deadline=None)
@given(st.data())
def test_a_leaf_of_the_answer_a_notebook_carries_is_found_out(folder, data):
    name = data.draw(st.sampled_from(["one row", "outside", "hidden", "gaps", "long way"]))
    payload = read_embedded(bundled(name)["text/html"])
    before = one(saved(folder / "before.ipynb", bundled(name)))
    places = [at for at in leaves(payload["envelope"]) if at[0] != ("dossier", "format")]
    place, value = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from(others(value)))
    forged = forged_comment(name, ("envelope", *place), other)
    after = one(saved(folder / "after.ipynb", forged))
    assert missed(before, place, after) is None


def texts_in(html):
    """Give every text that is shown, with where it stands."""
    body = html.index("</style>")
    spots = re.finditer(r">([^<>]*[^<>\s][^<>]*)<", html[body:])
    return [
        (body + spot.start(1), spot[1]) for spot in spots if "runbook_nb:payload" not in spot[1]
    ]


@settings_of_test(max_examples=50, deadline=None)
@given(st.data())
def test_a_text_that_is_shown_is_found_out_when_it_is_changed(folder, data):
    name = data.draw(st.sampled_from(["one row", "short way", "outside", "capped rows", "alone"]))
    html = bundled(name)["text/html"]
    place, text = data.draw(st.sampled_from(texts_in(html)))
    letters = [n for n, letter in enumerate(text) if letter.isalnum() and "&" not in text]
    if not letters:
        return
    at = place + data.draw(st.sampled_from(letters))
    letter = data.draw(st.sampled_from([c for c in "0179axQ" if c != html[at]]))
    forged = html[:at] + letter + html[at + 1 :]
    checked = one(saved(folder / "shown.ipynb", {**bundled(name), "text/html": forged}))
    assert not checked.ok, (text, letter)


@settings_of_test(max_examples=30, deadline=None)
@given(st.data())
def test_a_text_of_the_picture_is_found_out_when_it_is_changed(folder, data):
    name = data.draw(st.sampled_from(["one row", "short way", "outside", "alone"]))
    html = bundled(name)["text/html"]

    def change(svg):
        spots = list(re.finditer(r"<text[^>]*>([^<]*)</text>", svg))
        spot = data.draw(st.sampled_from([s for s in spots if s[1].strip().isascii()]))
        at = spot.start(1) + len(spot[1]) - len(spot[1].lstrip())
        letter = data.draw(st.sampled_from([c for c in "0179axQ" if c != svg[at]]))
        return svg[:at] + letter + svg[at + 1 :]

    forged = redrawn(html, change)
    checked = one(saved(folder / "drawn.ipynb", {**bundled(name), "text/html": forged}))
    assert any(claim.id.startswith("output[1].picture") for claim in checked.contradicted)


# --- what the claims are called ----------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_every_claim_is_called_as_the_page_says(name, tmp_path):
    page = Path(__file__).parents[2] / "docs" / "howto" / "check-an-answer.md"
    table = page.read_text("utf-8").partition("## What the claims are called")[2]
    told = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    begins = {re.match(r"\w+", id_)[0] for cell in told for id_ in re.findall("`([^`]+)`", cell)}
    checked = one(live(name).to_notebook(tmp_path / "a.ipynb"), recording=live(name).recording())
    assert {re.match(r"\w+", claim.id)[0] for claim in checked} <= begins


# --- what was filed ----------------------------------------------------------------------------


@pytest.fixture(params=["walk", "whole walk", "recording"])
def kept(request, filed, tmp_path):
    """A notebook that carries what was filed, the name of one such thing, and its claim."""
    names = {"walk": "walk", "whole walk": "columns", "recording": "recording"}
    file = filed.to_notebook(tmp_path / "a.ipynb")
    return file, request.param, f"ticket.{names[request.param]}"


def with_filed(path, name, change):
    document = json.loads(path.read_text("utf-8"))
    form = document["cells"][1]["outputs"][0]["metadata"][NAME]
    [written] = [one for one in form["filed"].values() if filed_name(one) == f"the {name}"]
    change(written)
    path.write_text(json.dumps(document), encoding="utf-8")
    return one(path)


def flip(text):
    at = len(text) // 2
    return text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]


def test_one_character_of_what_was_filed_is_found_out(kept):
    file, name, id_ = kept
    checked = with_filed(file, name, lambda it: it.update(data=flip(it["data"])))
    assert id_ in ids(checked)
    said = f"the {name} filed in output 1 of cell 2 is not what its digest is of"
    assert checked[id_].sentence == f"{id_} is contradicted by the digest beside it: {said}"


@pytest.mark.parametrize("part", ["sha-256", "ref", "digest"])
def test_what_stands_beside_it_is_held_to_it(kept, part):
    file, name, id_ = kept

    def change(it):
        held = it if part in it else it["ticket"]
        held[part] = flip(held[part])

    assert id_ in ids(with_filed(file, name, change))


def test_a_changed_thing_does_not_get_into_a_copy_that_is_handed_on(kept):
    file, name, _ = kept
    with_filed(file, name, lambda it: it.update(data=flip(it["data"])))
    shared = rb.share_notebook(file)
    [said] = [found for found in shared.findings if "not what its digest is of" in found.what]
    assert (said.action, said.place) == ("removed", f"the {name} filed in output 1 of cell 2")


# --- small things --------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["display:none", "font-size:0"])
@pytest.mark.parametrize("part", ["Verdicts", "Rules", "Walk as a list"])
def test_a_part_that_is_hidden_by_a_style_of_its_own_is_named(part, style, tmp_path):
    html = bundled("short way")["text/html"]
    at = html.index(f">{part}")
    begin = re.compile(r"<(?:span|li|div|td)").search(html, at).end()
    forged = f'{html[:begin]} style="{style}"{html[begin:]}'
    checked = one(saved(tmp_path / "b.ipynb", {**bundled("short way"), "text/html": forged}))
    assert "may be hidden by style" in checked["output[1].text/html.style"].because


@pytest.mark.parametrize(
    "twice", ['"rows_total":9,"rows_total":5', '"rows_total":5,"rows_total":5']
)
def test_a_key_that_stands_twice_is_refused(twice, tmp_path):
    file = tmp_path / "a.json"
    text = live("short way").to_json(dossier=True)
    assert '"rows_total":5' in text
    file.write_text(text.replace('"rows_total":5', twice, 1), encoding="utf-8")
    with pytest.raises(rb.errors.LoadError, match="'rows_total' stands twice in one object"):
        verify_file(file)


def test_where_two_forms_differ_is_named_and_nothing_else(exported):
    document = json.loads(exported.read_text(encoding="utf-8"))
    metadata = document["cells"][1]["outputs"][0]["metadata"][NAME]
    payload = json.loads(metadata["payload"])
    payload["envelope"]["result"]["verdicts"][0]["days"] = 8
    forged = written_form(payload, metadata.get("filed", {}), {})
    document["cells"][1]["outputs"][0]["metadata"][NAME] = forged
    exported.write_text(json.dumps(document), encoding="utf-8")
    said = one(exported)["form.same"].difference
    assert "verdicts[host=web-" in said
    assert len(said) < 200


# --- the path of one subject -------------------------------------------------------------------


def path_forged(file, change, *, picture=False):
    """Change the path in the explanation that a file of `to_notebook` shows."""
    document = json.loads(file.read_text("utf-8"))
    [cell] = [one for one in document["cells"] if "".join(one["source"]) == "envelope.why(row=0)"]
    data = cell["outputs"][0]["data"]
    html = "".join(data["text/html"])
    at = html.index("Walk as a list")
    forged = redrawn(html, change) if picture else html[:at] + change(html[at:])
    assert forged != html
    data["text/html"] = forged
    file.write_text(json.dumps(document), encoding="utf-8")
    return one(file)


@pytest.fixture
def explained(tmp_path):
    with settings(layout="pure"):
        return live("one row").to_notebook(tmp_path / "a.ipynb")


@pytest.mark.parametrize(
    ("old", "new"), [("&gt; 30", "&gt; 40"), ("days 45", "days 46"), (">old<", ">fresh<")]
)
def test_a_word_of_the_path_of_one_subject_is_found_out(explained, old, new):
    assert one(explained)["output[4].path"].status == "confirmed"
    checked = path_forged(explained, lambda text: text.replace(old, new))
    assert ids(checked) == ["output[4].path"]
    assert checked["output[4].path"].found != checked["output[4].path"].expected


@pytest.mark.parametrize(
    ("old", "new"), [("&gt; 30", "&gt; 40"), ("days 45", "days 46"), ("old", "aged")]
)
def test_a_word_in_the_picture_of_that_path_is_found_out(explained, old, new):
    before = one(explained)["output[4].path.picture"]
    assert before.basis == "the same picture, drawn anew to the byte"
    checked = path_forged(explained, lambda svg: svg.replace(old, new), picture=True)
    assert ids(checked) == ["output[4].path.picture"]


def test_a_path_is_told_again_where_other_subjects_failed(tmp_path):
    checked = one(live("gaps").to_notebook(tmp_path / "a.ipynb"))
    assert checked["output[2].walk"].status == "cannot be checked"
    assert checked["output[4].path"].status == "confirmed"


@pytest.mark.parametrize("name", ["nested", "resumed"])
def test_a_path_of_one_subject_that_a_copy_does_not_tell_cannot_be_checked(name, tmp_path):
    checked = one(live(name).to_notebook(tmp_path / "a.ipynb"))
    assert checked["output[4].path"].because == "the path of one subject is not carried"
