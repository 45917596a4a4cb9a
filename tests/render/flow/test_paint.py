"""The stylesheet inside a picture: small, scoped, and readable on both grounds."""

import re

import pytest

from runbook_nb.render.paint import DARK, LIGHT, style_for

HOSTS = {"light": ("#ffffff",), "dark": ("#212121", "#111111")}


def luminance(colour):
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("palette", "host"), [(LIGHT, "light"), (DARK, "dark")])
def test_text_and_lines_stand_out_from_every_ground_they_are_on(palette, host):
    grounds = (palette["ground"], palette["frame"], *HOSTS[host])
    for name in ("text", "dim", "off", "a", "b", "c", "d", "declined"):
        assert min(contrast(palette[name], ground) for ground in grounds) >= 4.5, name
    assert min(contrast(palette["line"], ground) for ground in grounds) >= 4.3


def test_it_is_small():
    assert len(style_for("rb-01234567", "auto")) <= 2700


def test_every_placeholder_is_filled():
    assert "$" not in style_for("rb-01234567", "auto")


def test_what_has_no_fill_keeps_none():
    fills = re.findall(r"\[fill=[^\]]*\]", style_for("rb-0", "auto"))
    assert set(fills) == {'[fill="white"]', '[fill="black"]'}


def test_nothing_is_loaded():
    assert not re.search(r"url|@import|@font-face|expression", style_for("rb-0", "auto"))
