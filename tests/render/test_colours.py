"""Colours, contrast and signs, held over every view and widget there is.

Static views, pictures and the stylesheets of widgets are read as they are sent: a colour that is
added anywhere is met here with the ground it stands on.
"""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import combinations, product
from pathlib import Path

import displayables
import pytest
from colours import channels, contrast, distance, over
from displayables import SAMPLES, USUAL, frozen, shown_classes

import runbook_nb as rb
from runbook_nb.render import paint, theme
from runbook_nb.render.bundle import HTML
from runbook_nb.widgets.base import Widget

CLASSES = shown_classes()
NAMES = sorted(CLASSES)
CORE = ("a", "b", "declined")
#: Grounds that hosts put behind an output: light, and two that are dark.
GROUNDS = {"light": ("#ffffff",), "dark": ("#212121", "#111111")}
#: The red, green and orange JupyterLab has for errors, success and warnings, in both themes: the
#: trio that is confused.
OF_LAB = ("#d32f2f", "#f44336", "#388e3c", "#4caf50", "#f57c00", "#ff9800")
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b")
SHEETS = sorted(Path(theme.__file__).parent.glob("static/*.css")) + sorted(
    Path(theme.__file__).parents[1].glob("widgets/static/*.css")
)
SCRIPTS = sorted(Path(theme.__file__).parents[1].glob("widgets/static/*.js"))
SIGNS = {sign.glyph for sign in theme.SIGNS.values()} | {sign for sign, _ in theme.LEDGER.values()}


@pytest.fixture(scope="module")
def outputs():
    """Give the HTML of every class that shows itself, made once."""
    with frozen():
        return {name: SAMPLES[CLASSES[name]](USUAL)._repr_mimebundle_()[0][HTML] for name in NAMES}


def pictures(html):
    for encoded in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html):
        svg = base64.b64decode(encoded).decode("utf-8")
        yield ET.fromstring(svg[svg.index("<svg") :])  # noqa: S314 - our own


# --- the palette -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vision", "light", "dark"),
    [
        ("normal", 40.9, 33.4),
        ("protan", 38.1, 30.1),
        ("deutan", 44.2, 35.8),
        ("tritan", 23.4, 37.5),
    ],
)
def test_the_core_roles_are_told_apart_by_every_kind_of_vision(vision, light, dark):
    """Floors just below what they are; on a screen, so colours it cannot show are cut."""
    for palette, floor in ((theme.TEXT_LIGHT, light), (theme.TEXT_DARK, dark)):
        pairs = combinations([palette[role] for role in CORE], 2)
        assert min(distance(one, other, vision) for one, other in pairs) >= floor >= 20


@pytest.mark.parametrize(
    ("vision", "light", "dark"),
    [("normal", 41, 34), ("protan", 38, 30), ("deutan", 44, 36), ("tritan", 41, 38)],
)
def test_the_core_roles_are_as_far_apart_as_they_were_designed(vision, light, dark):
    """The design's figures are those of the simulation itself, before a screen cuts it."""
    for palette, figure in ((theme.TEXT_LIGHT, light), (theme.TEXT_DARK, dark)):
        pairs = combinations([palette[role] for role in CORE], 2)
        least = min(distance(one, other, vision, on_screen=False) for one, other in pairs)
        assert round(least) >= figure - (figure == 34)  # 33.5 is either


def test_the_measures_are_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#0b5fa5", "#fff") == pytest.approx(6.6, abs=0.05)
    assert distance("#ffffff", "#000000", "normal") == pytest.approx(100, abs=0.1)
    # what red and green are to eyes that lack one kind of cone
    assert distance("#d32f2f", "#388e3c", "normal") > 100
    assert distance("#d32f2f", "#388e3c", "deutan") < 45


def test_the_roles_have_one_colour_in_cards_pictures_and_stylesheets():
    for role in CORE:
        assert paint.LIGHT[role] == theme.TEXT_LIGHT[role] == theme.FILLS[role]
        assert paint.DARK[role] == theme.TEXT_DARK[role]
        light, *dark = re.findall(rf"--rb-{role}:(#[0-9a-f]+)", theme.css())
        del light
        assert set(dark) <= {theme.TEXT_LIGHT[role], theme.TEXT_DARK[role]}


@pytest.mark.parametrize("path", [*SHEETS, *SCRIPTS], ids=lambda path: path.name)
def test_no_file_has_the_red_green_and_orange_that_are_confused(path):
    text = path.read_text("utf-8").lower()
    assert not [colour for colour in OF_LAB if colour in text]
    assert not re.search(r"--jp-(success|error|warn)-color|(?<![\w-])(red|green|orange)\b", text)


@pytest.mark.parametrize("name", NAMES)
def test_no_output_has_them_either(outputs, name):
    html = outputs[name].lower()
    assert not [colour for colour in OF_LAB if colour in html]
    for root in pictures(outputs[name]):
        drawn = ET.tostring(root, "unicode").lower()
        assert not [colour for colour in OF_LAB if colour in drawn]


# --- contrast of cards -------------------------------------------------------------------------


def declarations(style):
    pairs = (one.partition(":")[::2] for one in style.split(";") if one.strip())
    return {key.strip(): value.strip() for key, value in pairs}


class Styled(HTMLParser):
    """Every element that has a style, with the words inside it and those that follow."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self._open, self._silent = [], 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._silent += tag == "style"
        given = dict(attrs)
        one = {
            "tag": tag,
            "class": given.get("class") or "",
            "style": declarations(given.get("style") or ""),
            "hidden": given.get("aria-hidden") == "true",
            "words": "",
            "place": len(self.found),
        }
        self.found.append(one)
        if tag not in ("img", "col", "br"):
            self._open.append(one)

    def handle_endtag(self, tag):
        self._silent -= tag == "style"
        while self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        if not self._silent:
            for one in self._open:
                one["words"] += data


@pytest.mark.parametrize("name", NAMES)
def test_words_in_a_view_have_their_contrast(outputs, name):
    """Text is the host's, painted with its ground; only chips and tiles paint their own."""
    dim = []
    for one in Styled(outputs[name]).found:
        style = one["style"]
        if "color" in style:
            ground = style["background-color"]
            assert contrast(style["color"], ground) >= 4.5, one
        if "opacity" in style and one["words"].strip():
            dim.append(float(style["opacity"]))
    for host, share in product(
        [("#1f2328", "#ffffff"), ("#e6e6e6", "#212121"), ("#ffffff", "#111111")], set(dim)
    ):
        text, ground = host
        assert contrast(over(text, ground, share), ground) >= 4.5


@pytest.mark.parametrize("name", NAMES)
def test_lines_in_a_view_can_be_seen_on_every_ground(outputs, name):
    for one in Styled(outputs[name]).found:
        for key, value in one["style"].items():
            if key.startswith("border") and (colour := COLOUR.search(value)):
                for ground in (*GROUNDS["light"], *GROUNDS["dark"]):
                    assert contrast(colour[0], ground) >= 3, one


# --- contrast of pictures ----------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "palette"), [("light", paint.LIGHT), ("dark", paint.DARK)])
def test_words_and_lines_of_a_picture_have_their_contrast_on_every_ground(scheme, palette):
    grounds = {palette["ground"], palette["frame"], *GROUNDS[scheme]}
    texts = {palette[role] for role in ("text", "dim", "off", *theme.TEXT_LIGHT)}
    lines = {palette[role] for role in ("line", *theme.TEXT_LIGHT)}
    for ground, colour in product(grounds, texts):
        assert contrast(colour, ground) >= 4.5, (colour, ground)
    for ground, colour in product(grounds, lines):
        assert contrast(colour, ground) >= 3, (colour, ground)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_has_no_colour_of_its_own(outputs, name):
    """What is drawn is black and white to the stylesheet inside, which has the palette alone."""
    known = {*paint.LIGHT.values(), *paint.DARK.values()}
    for root in pictures(outputs[name]):
        styles = [one.text for one in root.iter() if one.tag.endswith("}style")]
        assert {colour for style in styles for colour in COLOUR.findall(style)} <= known
        painted = {
            one.get(key)
            for one in root.iter()
            for key in ("fill", "stroke")
            if one.get(key) is not None
        }
        assert painted <= {"none", "black", "white", "transparent"}


# --- contrast of widgets -----------------------------------------------------------------------

#: Parts of a bar that shows progress: nothing is written on them.
MARK = re.compile(r"::-(webkit|moz)-progress-")
#: What parts one thing from the next, where the layout parts them already.
HAIR = "rgba(125, 133, 144, .26)"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


def tokens(scheme):
    """Give what each name of a stylesheet is in a host that has no colours of its own."""
    found = {}
    for text in (theme.tokens(), *(path.read_text("utf-8") for path in SHEETS)):
        plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        for selector, body in _RULE.findall(plain):
            if "rbnb-page" in selector:
                continue  # whole pages, which say the same of a reader's system
            dark = "dark" in selector or "high-contrast" in selector
            for key, value in declarations(body).items():
                if key.startswith("--rb") and (scheme == "dark" or not dark):
                    found[key] = value
    return found


def literal(value, scheme, known):
    """Follow a value of a stylesheet to a literal colour, or give None where it has none."""
    for _ in range(9):
        if both := re.fullmatch(r"light-dark\((.+?\)?),\s*(.+)\)", value):
            value = both[1 if scheme == "light" else 2]
        elif value.startswith("var("):
            names = re.findall(r"--rbw?-[\w-]+", value)
            if not names:
                return None
            value = known.get(names[-1], "")
        else:
            break
    return value if re.fullmatch(r"#[0-9a-f]{3}|#[0-9a-f]{6}", value) else None


def tinted(value, scheme, known, ground):
    """Give what a see-through value is on its ground."""
    if both := re.fullmatch(r"light-dark\((rgba\([^)]*\)),\s*(rgba\([^)]*\))\)", value):
        value = both[1 if scheme == "light" else 2]
    if value.startswith("var("):
        return tinted(known.get(re.findall(r"--rbw?-[\w-]+", value)[-1], ""), scheme, known, ground)
    if parts := re.fullmatch(r"rgba\((\d+), ?(\d+), ?(\d+), ?([\d.]+)\)", value):
        red, green, blue = (int(parts[n]) for n in (1, 2, 3))
        return over(f"#{red:02x}{green:02x}{blue:02x}", ground, float(parts[4]))
    return literal(value, scheme, known)


WIDGETS = [path for path in SHEETS if path.parent.parent.name == "widgets"]


@pytest.mark.parametrize("scheme", GROUNDS)
@pytest.mark.parametrize("path", WIDGETS, ids=lambda path: path.name)
def test_words_lines_and_grounds_of_a_widget_have_their_contrast(path, scheme):
    known = tokens(scheme)
    root = literal(known["--rb-bg0"], scheme, known)
    text = literal(known["--rb-fg0"], scheme, known)
    plain = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    met = 0
    for selector, body in _RULE.findall(plain):
        told = declarations(body)
        behind = told.get("background", told.get("background-color"))
        ground = root if behind in (None, "none") else tinted(behind, scheme, known, root)
        given = told.get("color", "inherit")
        if given != "inherit":
            ink = literal(given, scheme, known)
        else:  # what is filled for a role is written on in white, as tiles and chips are
            ink = "#ffffff" if behind in theme.FILLS.values() else text
        assert ground, (selector, behind)
        assert ink, (selector, told)
        if "-progress-bar" in selector and behind == HAIR:
            continue  # what a bar has not filled yet
        if behind and (MARK.search(selector) or re.fullmatch("[1-9]px", told.get("width", ""))):
            assert contrast(ground, root) >= 3, (selector, ground)  # a mark, without words
            continue
        if "opacity" in told:
            ink = over(ink, ground, float(told["opacity"]))
        assert contrast(ink, ground) >= 4.5, (selector, ink, ground)
        met += 1
        for key, value in told.items():
            if not re.match(r"border|outline|stroke|fill|accent-color", key):
                continue
            names = re.findall(r"var\(--rbw?-[\w-]+\)|#[0-9a-f]{3,6}", value)
            for one in names:
                if "hair" in one or "line" in one:
                    continue  # parts what the layout parts already; nothing is read off it
                line = literal(one, scheme, known)
                assert line, (selector, value)
                if line not in (root, ground):  # the edge of a fill, whose words stand out
                    assert contrast(line, root) >= 3, (selector, line)
    assert met > 5


def test_every_stylesheet_of_a_widget_is_looked_at():
    used = {sheet for one in CLASSES.values() if issubclass(one, Widget) for sheet in one.sheets}
    assert used | {"widget.css"} <= {path.name for path in WIDGETS}


def test_a_widget_names_colours_in_its_stylesheet_alone():
    for path in SCRIPTS:
        code = re.sub(r"//.*", "", path.read_text("utf-8"))
        assert not re.findall(r"[\"'`]#[0-9a-fA-F]{3,8}[\"'`]|rgba?\(", code), path.name
        assert not re.search(r"\.style\.(color|background|fill|stroke)\b", code), path.name


# --- a sign and a word beside each colour ------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_in_a_view_a_colour_stands_with_a_sign_and_a_word(outputs, name):
    found = Styled(outputs[name]).found
    for place, one in enumerate(found):
        if "background-color" not in one["style"]:
            continue
        if "rb-bar" in one["class"]:
            continue  # its shares are the counts of the chips, see below
        if "rb-tile" in one["class"]:
            assert one["words"] in SIGNS
            assert one["hidden"]
            word = found[place + 1]["words"]
        else:
            assert "rb-chip" in one["class"]
            sign = found[place + 1]
            assert sign["hidden"]
            assert sign["words"] in SIGNS
            word = one["words"].removeprefix(sign["words"])
        assert re.search(r"\w", word), one


def test_a_bar_has_as_many_pieces_as_chips_that_say_the_same(outputs):
    with frozen():
        html = wide()._repr_mimebundle_()[0][HTML]
    found = Styled(html).found
    bars = [one["style"].get("background-color") for one in found if "rb-bar" in one["class"]]
    chips = [one["style"].get("background-color") for one in found if "rb-chip" in one["class"]]
    assert len(bars) >= 2
    assert chips[: len(bars)] == bars


def wide():
    rows = [{"subject": f"s{n}", "days": n, "known": True, "policy": ""} for n in range(14)]
    return rb.triage(rows, displayables.rules("x"), subject="subject", source="inventory")


@pytest.mark.parametrize("name", NAMES)
def test_in_a_picture_a_node_of_a_verdict_begins_with_its_sign(outputs, name):
    for root in pictures(outputs[name]):
        for node in root.iter():
            classes = (node.get("class") or "").split()
            roles = {*classes} & {*theme.TEXT_LIGHT}
            if "node" not in classes or not roles:
                continue
            (role,) = roles
            lines = ["".join(one.itertext()) for one in node if one.tag.endswith("}text")]
            signs = {theme.SIGNS[role].glyph}
            if name.startswith("Playbook"):  # a step is called first; how it stands is below
                assert re.match(r"\d+ \w", lines.pop(0))
                signs = {one.glyph for one in theme.SIGNS.values()}
                signs.add("\N{BLACK RIGHT-POINTING TRIANGLE}")  # where the pointer is
            sign, _, word = lines[0].partition(" ")
            assert sign in signs
            assert re.search(r"\w", word)


def test_the_pictures_here_have_nodes_of_verdicts(outputs):
    drawn = [
        (node.get("class") or "").split()
        for name in ("Envelope", "Run", "Walk")
        for root in pictures(outputs[name])
        for node in root.iter()
    ]
    if not drawn:
        pytest.skip("nothing here draws")
    assert {"a", "b", "declined"} <= {one for classes in drawn for one in classes}


def test_signs_of_roles_that_meet_in_one_view_differ():
    together = ("a", "b", "c", "d", "declined", "failed", "not_reached", "absent", "skipped")
    assert len({theme.SIGNS[role].glyph for role in together}) == len(together)


def test_a_script_writes_the_sign_and_the_word_it_was_sent():
    """Roles reach a widget with sign and word in one piece, so neither can be left out."""
    from runbook_nb.widgets.telling import badge

    for role, sign in theme.SIGNS.items():
        assert badge("word", role) == ["b", "word", role, sign.glyph]


def test_the_measure_reads_every_form_of_a_colour():
    assert channels("#fff") == channels("#ffffff") == channels("white")
    with pytest.raises(ValueError, match="no literal colour"):
        channels("rebeccapurple")
