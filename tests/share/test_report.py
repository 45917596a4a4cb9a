"""An answer as one page: complete, quiet on the network, and the same every time."""

import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import runbook_nb as rb
from runbook_nb._version import __version__
from runbook_nb.render.embed import read_embedded
from runbook_nb.render.parts import number
from runbook_nb.share.exported import EXPORTED_ROWS
from runbook_nb.share.report import report_html
from runbook_nb.testing import assert_hidden, reproducible

CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
VOID = {"meta", "img", "br", "hr", "col", "input", "link", "wbr"}


class Page(HTMLParser):
    """Reads a page as strictly as it is written: every element is closed, in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts, self.comments = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    def handle_comment(self, data):
        self.comments.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return re.sub(r"[ \n]+", " ", "".join(self.texts))


@pytest.fixture(scope="module")
def text(envelope):
    return report_html(envelope)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


# --- the page ----------------------------------------------------------------------------------


def test_it_is_a_whole_page_in_a_language_with_a_title(text, page):
    assert text.startswith("<!doctype html>\n")
    assert page.all("html") == [{"lang": "en"}]
    assert "<title>Envelope triage · age v1 · 2 rows (1 fresh, 1 old)</title>" in text
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("footer")) == 1


def test_its_policy_lets_it_fetch_nothing(page):
    policies = [m for m in page.all("meta") if m.get("http-equiv")]
    assert policies == [{"http-equiv": "Content-Security-Policy", "content": CSP}]


def test_it_follows_the_scheme_of_the_reader(text, page):
    assert {"name": "color-scheme", "content": "light dark"} in page.all("meta")
    assert 'class="rbnb rbnb-page"' in text
    assert "@media (prefers-color-scheme:dark){.rbnb.rbnb-page{" in text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme_that_was_chosen_holds_whatever_the_scheme(envelope, theme):
    with rb.settings(theme=theme):
        page = Page(report_html(envelope))
    assert {"name": "color-scheme", "content": theme} in page.all("meta")
    assert page.all("html") == [{"lang": "en", "data-theme": theme}]
    assert {"rbnb"} == {e.get("class") for e in page.all("div") if "rbnb" in e.get("class", "")}


def test_it_is_made_to_be_printed(text):
    assert "@page {" in text
    assert "@media print {" in text
    assert "print-color-adjust: exact" in text


def test_nothing_in_it_points_anywhere(text, page):
    """No address, no script, no form: E7 holds for files, too."""
    assert {"script", "link", "iframe", "form", "object", "embed", "base"} & {
        tag for tag, _ in page.elements
    } == set()
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in {"href", "srcset", "action", "data", "poster", "background"}
            if name == "src":
                assert (tag, value[:26]) == ("img", "data:image/svg+xml;base64,")
    styles = " ".join(
        [
            *re.findall(r"<style>(.*?)</style>", text, re.DOTALL),
            *re.findall(r'style="([^"]*)"', text),
        ]
    )
    assert "url(" not in styles
    assert "@import" not in styles
    assert re.search(r"https?://(?!www\.w3\.org/)", text) is None


def test_every_picture_says_what_it_shows(page):
    pictures = page.all("img")
    assert pictures
    assert all(picture["alt"] for picture in pictures)


def test_it_says_what_a_cell_says(envelope, page):
    for words in ("zeta", "days 9 > 7", "older than a week", "2 rows", "Walk as a list"):
        assert words in page.text
    for entry in (*envelope.ledger.checked, *envelope.ledger.not_checked):
        assert " ".join(entry.what.split()) in page.text


def test_f5_it_says_which_rules_which_call_and_what_wrote_it(envelope, page):
    result = envelope["result"]
    foot = page.text[page.text.index("Walk as a list") :]
    assert "Rules age v1" in foot
    assert f"Call {result['af_provenance']['toolCallId']}" in foot
    assert f"Walk {result['walk']['ref']}" in foot
    assert f"Written by runbook_nb {__version__}" in foot


def test_what_is_not_known_is_left_out_of_the_footer(envelope):
    wire = envelope.to_dict()
    del wire["result"]["walk"]["ref"], wire["result"]["af_provenance"]["toolCallId"]
    text = Page(report_html(rb.Envelope.from_dict(wire))).text
    foot = text[text.index("walk not filed") :]
    assert "Call" not in foot
    assert "Rules v1" in foot


# --- what it carries ---------------------------------------------------------------------------


def test_the_whole_answer_is_carried_with_its_tickets(envelope, text):
    read = read_embedded(text)
    assert read["envelope"] == envelope.to_dict(dossier=True)
    assert read["carried"] == {"rows": [2, 2], "subjects": [2, 2]}


def test_an_answer_too_large_for_a_cell_is_carried_whole(many):
    read = read_embedded(report_html(many))
    assert read["carried"] == {"rows": [1_200, 1_200], "subjects": [1_200, 1_200]}
    assert read_embedded(many._repr_mimebundle_()[0]["text/html"])["carried"]["rows"][0] < 1_200


def test_it_shows_more_rows_than_a_cell_and_says_how_many_of_how_many(many):
    text = Page(report_html(many)).text
    assert f"{number(EXPORTED_ROWS)} of {number(1_200)} shown" in text
    assert f"host-{EXPORTED_ROWS - 1:04}" in text
    assert f"host-{EXPORTED_ROWS:04}" not in text


def test_where_carrying_is_switched_off_nothing_is_carried_and_nothing_promised(envelope):
    with rb.settings(embed=False):
        page = Page(report_html(envelope))
    assert page.comments == []
    assert "as data" not in page.text


def test_a_copy_makes_a_page_too(envelope):
    copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    assert "days 9 > 7" in Page(report_html(copy)).text


# --- bytes -------------------------------------------------------------------------------------


def test_it_is_written_twice_with_the_same_bytes(envelope, tmp_path):
    one, other = envelope.to_html(tmp_path / "a.html"), envelope.to_html(tmp_path / "b.html")
    assert one == tmp_path / "a.html"
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes().endswith(b"</html>\n")
    assert b"\r" not in one.read_bytes()


PROBE = """
import sys
import runbook_nb as rb
from runbook_nb.testing import reproducible
rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
rows = [{"host": "zeta", "days": 9}, {"host": "alpha", "days": 1}]
with reproducible():
    envelope = rb.triage(rows, rules, subject="host", source="2 rows", redact={"keys": ["note"]})
    envelope.to_html(sys.argv[1])
    envelope.to_notebook(sys.argv[2])
"""


def test_two_processes_write_the_same_bytes(tmp_path):
    files = []
    for seed in ("1", "2"):
        page, notebook = tmp_path / seed / "a.html", tmp_path / seed / "a.ipynb"
        page.parent.mkdir()
        subprocess.run(
            [sys.executable, "-c", PROBE, str(page), str(notebook)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"},
            check=True,
        )
        files.append((page.read_bytes(), notebook.read_bytes()))
    assert files[0] == files[1]


# --- hostile words and secrets -----------------------------------------------------------------

HOSTILE = "</title></style><img src=x onerror=alert(1)>--><script>alert(2)</script>{{7*7}}\u202e|`"


#: What a stage may be called, so a verdict as well.
VERDICT = "<img src=x onerror=alert(3)>|`"


def test_d6_hostile_words_are_shown_as_words_wherever_they_stand():
    rules = rb.RuleSet(
        HOSTILE, HOSTILE, [rb.Rule({"days": {"gt": 7}}, VERDICT, label=HOSTILE)], rb.Default("ok")
    )
    with reproducible():
        shown = rb.triage(
            [{"host": HOSTILE, "days": 9, HOSTILE: HOSTILE}],
            rules,
            subject="host",
            source=HOSTILE,
            cannot_cover=[rb.Item(HOSTILE, why=HOSTILE)],
            report={HOSTILE: HOSTILE},
            columns=["days", HOSTILE],
        )
    text = report_html(shown)
    page = Page(text)
    assert {tag for tag, _ in page.elements} & {"script"} == set()
    assert all(picture["src"].startswith("data:") for picture in page.all("img"))
    assert page.text.count("<script>alert(2)</script>") >= 8
    assert "49" not in re.sub(r"<!--.*?-->", "", page.text)
    assert "\u202e" not in page.text


def test_a_tool_of_a_copy_may_be_called_anything(envelope):
    wire = envelope.to_dict()
    wire["result"]["af_provenance"] = {"tool": HOSTILE, "toolCallId": HOSTILE}
    page = Page(report_html(rb.Envelope.from_dict(wire)))
    assert not page.all("script")
    assert "Report of </title></style><img src=x" in page.text


def test_what_a_policy_hides_is_in_no_form_of_the_file(answer, tmp_path):
    rows = [{"host": "a", "days": 9, "token": "t0p-s3cret"}]
    shown = answer(rows, columns=["days", "token"], redact={"keys": ["token"]})
    assert_hidden(shown, "t0p-s3cret")
    page = shown.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    notebook = shown.to_notebook(tmp_path / "a.ipynb").read_text(encoding="utf-8")
    for text in (page, html.unescape(page), str(read_embedded(page)), notebook):
        assert "t0p-s3cret" not in text
    assert "[REDACTED]" in page


def test_a_leak_in_a_view_is_closed_on_the_way_out(answer, monkeypatch):
    """Every view has passed the policy; a file does not rely on it."""
    from dataclasses import replace

    rows = [{"host": "a", "days": 9, "token": "t0p-s3cret"}]
    shown = answer(rows, columns=["days", "token"], redact={"keys": ["token"]})
    view = type(shown).view

    def leaky(self):
        card = view(self)
        return replace(card, headline="with t0p-s3cret", state="failed: t0p-s3cret")

    monkeypatch.setattr(type(shown), "view", leaky)
    text = report_html(shown)
    assert "t0p-s3cret" not in text
    assert "failed: [REDACTED]" in text
