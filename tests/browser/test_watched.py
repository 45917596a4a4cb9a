"""The watch itself: each thing that pages must not do is noticed when one does it."""

import pytest
from watched import of_theme

PLAIN = "<!doctype html>{head}<body style='background:#fff;color:#111;margin:0'>{body}"
POLICY = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
RED_DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGA"
    "hKmMIQAAAABJRU5ErkJggg=="
)


@pytest.fixture
def shown(tab, tmp_path):
    """Show a page that holds a piece of HTML."""

    def shown(html, head=""):
        path = tmp_path / "page.html"
        path.write_text(PLAIN.format(head=head, body=html), encoding="utf-8")
        watched = tab(viewport={"width": 400, "height": 300})
        watched.show(path)
        return watched

    return shown


def test_a_plain_page_has_no_flaws(shown):
    html = "<p>words <span style='opacity:.74'>and more</span></p><table><tr><td>1</table>"
    watched = shown(f"{html}<img src='{RED_DOT}' alt='a dot'>")
    assert watched.flaws() == {}
    assert watched.complaints() == []


@pytest.mark.parametrize(
    ("kind", "html"),
    [
        ("faint", "<p style='color:#777'>grey on white by a hair</p>"),
        ("faint", "<p style='opacity:.5'>half of the ink</p>"),
        ("faint", "<p style='background:#123'>dark on dark</p>"),
        (
            "faint",
            "<div style='background:rgba(0,0,0,.7)'><p>on a ground that is not opaque</p></div>",
        ),
        ("lost", "<div style='height:0;overflow:hidden'>cut away</div>"),
        (
            "lost",
            "<div style='width:30px;overflow:hidden;white-space:nowrap'>cut at its right</div>",
        ),
        ("small", "<p style='font-size:11px'>small print</p>"),
        ("wide", "<div style='width:600px'>sticks out</div>"),
        ("missing", "<img src='data:image/png;base64,AAAA' alt='broken'>"),
        ("missing", f"<img src='{RED_DOT}'>"),
    ],
)
def test_a_flaw_is_found(shown, kind, html):
    assert kind in shown(f"<p>words</p>{html}").flaws()


def test_a_page_that_scrolls_sideways_is_found(shown):
    assert (
        "the page scrolls sideways" in shown("<div style='width:600px;height:1px'></div>").flaws()
    )
    assert shown("<div style='overflow:auto'><p style='width:600px'>scrolls</div>").flaws() == {}


def test_what_is_folded_away_is_not_judged(shown):
    watched = shown("<details><summary>more</summary><p style='color:#eee'>hidden</p></details>")
    assert watched.flaws() == {}
    assert watched.ask("words") == "more"


@pytest.mark.parametrize(
    ("html", "complaint"),
    [
        ("<img src='https://example.org/a.png'>", "asked for https://example.org/a.png"),
        ("<script>fetch('http://127.0.0.1:9/')</script>", "asked for http://127.0.0.1:9/"),
        ("<script>console.error('a sad thing')</script>", "console: a sad thing"),
        ("<script>undefined.nothing</script>", "uncaught: "),
    ],
)
def test_what_a_page_must_not_do_is_complained_of(shown, html, complaint):
    watched = shown(html)
    watched.page.wait_for_timeout(100)
    assert any(complaint in line for line in watched.complaints())
    watched.complaints()


def test_a_broken_content_policy_is_complained_of(shown):
    watched = shown("<script>1</script>", head=POLICY)
    watched.page.wait_for_timeout(100)
    assert any("policy script-src-elem broken" in line for line in watched.complaints())


def test_a_picture_is_told_to_be_light_or_dark(shown):
    watched = shown("<div style='height:99px;background:#212121'></div>")
    ground = watched.shares(watched.page.locator("div"))
    assert of_theme(ground, "dark")
    assert not of_theme(ground, "light")


def test_a_word_in_a_picture_is_judged_on_the_shape_below_it(shown):
    def picture(ink):
        return (
            "<div><svg width='200' height='80'><path fill='#0b5fa5' d='M0 0h200v80H0z'/>"
            f"<text x='60' y='40' fill='{ink}'>word</text></svg></div>"
        )

    watched = shown(picture("#fff"))
    assert watched.ask("faintInPicture", watched.page.locator("svg"))["found"] == []
    watched = shown(picture("#111"))
    assert len(watched.ask("faintInPicture", watched.page.locator("svg"))["found"]) == 1


def test_the_accessibility_check_finds_what_is_grave(shown, accessibility):
    found = accessibility(shown("<button></button>").page)
    assert any("button-name" in line for line in found["critical"])
