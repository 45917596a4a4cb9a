"""The palette holds its contrast, the stylesheet its scope and its size."""

from __future__ import annotations

import re

import pytest
from untrusted import kept_style

from runbook_nb._view import VERDICT_ROLES
from runbook_nb.render import theme

WHITE, LAB_DARK, LAB_PAGE = "#ffffff", "#212121", "#111111"
INLINE = {
    **theme.STYLES,
    **{f"rail {name}": style for name, style in theme.RAILS.items()},
    **{f"key {name}": style for name, style in theme.KEYS.items()},
    **{f"chip {role}": theme.chip_style(role) for role in (*theme.SIGNS, "plain")},
    **{f"glyph {role}": theme.glyph_style(role) for role in theme.SIGNS},
    **{f"mark {role}": theme.mark_style(role) for role in theme.SIGNS},
    **{f"tile {r}": theme.tile_style(r) for r in theme.SIGNS if r in theme.FILLS},
    "outlined tile": theme.tile_style("not_reached"),
    "label": theme.LABEL_STYLE,
    "bar": theme.bar_style("a", 33.333),
    "dashed bar": theme.bar_style("not_reached", 3),
    "columns": "grid-template-columns:minmax(132px,max-content) minmax(0,1fr)",
    "wide columns": "grid-template-columns:260px minmax(0,1fr)",
}


def channels(colour):
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def over(rgb, ground, opacity):
    return [opacity * c + (1 - opacity) * g for c, g in zip(rgb, ground, strict=True)]


def test_the_measure_is_right():
    assert contrast(channels("#000000"), channels(WHITE)) == pytest.approx(21)
    assert contrast(channels("#0b5fa5"), channels(WHITE)) == pytest.approx(6.6, abs=0.05)


@pytest.mark.parametrize("role", theme.FILLS)
def test_white_can_be_read_on_every_fill(role):
    assert contrast(channels(theme.FILLS[role]), channels(WHITE)) >= 4.5


@pytest.mark.parametrize("role", theme.TEXT_LIGHT)
def test_every_role_can_be_read_as_text_in_both_themes(role):
    assert contrast(channels(theme.TEXT_LIGHT[role]), channels(WHITE)) >= 4.5
    assert contrast(channels(theme.TEXT_DARK[role]), channels(LAB_DARK)) >= 4.5


@pytest.mark.parametrize("ground", [WHITE, LAB_DARK, LAB_PAGE])
def test_lines_can_be_seen_on_every_ground(ground):
    assert contrast(channels(theme.LINE), channels(ground)) >= 3


@pytest.mark.parametrize(
    ("text", "opacity", "ground"),
    [("#000000", 0.87, WHITE), ("#ffffff", 1, LAB_DARK), ("#ffffff", 1, LAB_PAGE)],
)
def test_quiet_words_can_be_read(text, opacity, ground):
    below = channels(ground)
    said = over(channels(text), below, opacity * theme.DIM)
    assert contrast(said, below) >= 4.5


def test_each_verdict_role_has_its_own_sign_and_fill():
    roles = (*VERDICT_ROLES, "declined")
    assert len({theme.SIGNS[role].glyph for role in roles}) == len(roles)
    assert len({theme.FILLS[role] for role in roles}) == len(roles)


@pytest.mark.parametrize("name", INLINE)
def test_an_untrusted_notebook_keeps_every_inline_style_whole(name):
    assert kept_style(INLINE[name]) == INLINE[name]


@pytest.mark.parametrize("name", INLINE)
def test_no_inline_style_colours_running_text(name):
    style = INLINE[name]
    assert ("color:#ffffff" in style) == ("background-color:" in style and "bar" not in name)


def test_no_text_is_smaller_than_12_px_but_glyphs():
    for name, style in INLINE.items():
        sizes = [int(size) for size in re.findall(r"font-size:(\d+)px", style)]
        assert all(size >= 12 for size in sizes) or name.split()[0] in ("glyph", "mark", "tile")


def selectors(css):
    css = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\}", r"\1", css)
    for rule in re.findall(r"([^{}]+)\{[^{}]*\}", css):
        yield from (selector.strip() for selector in rule.split(","))


def test_every_rule_of_the_stylesheet_stays_inside_the_card():
    found = list(selectors(theme.css()))
    assert len(found) > 15
    for selector in found:
        assert ".rbnb" in selector
        inside = selector.partition(".rbnb")[2]
        assert not re.search(r"[ >+~][a-z#*]", inside), "only classes below the root"
    assert "!important" not in theme.css()
    assert ":root" not in theme.css()


def test_only_hosts_that_are_dark_are_named_before_the_root():
    before = {s.partition(".rbnb")[0].strip() for s in selectors(theme.css())} - {""}
    assert before == {
        'body[data-jp-theme-light="false"]',
        "body.vscode-dark",
        'body[data-vscode-theme-kind*="dark"]',
        'body[data-vscode-theme-kind="vscode-high-contrast"]',
        'html[theme="dark"]',
        'html[data-theme="dark"]',
        ".quarto-dark",
    }


def test_the_system_theme_counts_for_whole_pages_alone():
    (block,) = re.findall(r"@media\(?[^{]*prefers-color-scheme[^{]*\{([^{]*)\{", theme.css())
    assert block == ".rbnb.rbnb-page"


def test_wherever_the_literal_colours_change_the_scheme_of_pictures_does_too():
    blocks = re.findall(r"\{([^{}]*--rb-bg0:[^{}]*)\}", theme.css())
    schemes = [
        (
            re.search("--rb-bg0:(#[0-9a-f]+)", block)[1],
            re.search("color-scheme:(.+?)(;|$)", block)[1],
        )
        for block in blocks
    ]
    assert sorted(schemes) == [("#212121", "dark"), ("#212121", "dark"), ("#ffffff", "light")]


def test_the_stylesheet_is_small_and_holds_nothing_a_tag_could_end():
    assert len(theme.css().encode()) <= 4096
    assert "<" not in theme.css()


def test_text_and_ground_are_painted_together():
    root = re.match(r"\.rbnb\{([^}]*)\}", theme.css())[1]
    assert "color:var(--rb-fg)" in root
    assert "background:var(--rb-bg)" in root
