"""Probes D4 to D7, in text, in Markdown and in the table for models."""

from __future__ import annotations

import html
import json

import pytest

import runbook_nb as rb

RULES = rb.RuleSet("r", "1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
HOSTILE = ["<img src=x onerror=alert(1)>", "</td>", "a|b", "`x`", "**b**", "[l](javascript:x)"]


def test_probe_d4_a_capped_table_says_so_itself_and_where_the_rest_is(triage):
    envelope = triage([{"host": f"h{n}", "days": n} for n in range(51)], RULES)
    assert "10 of 51 rows" in str(envelope)
    assert "41 more rows: to_frame()" in str(envelope)
    markdown = envelope.to_markdown()
    assert "50 of 51" in markdown
    assert "to_frame()" in markdown
    assert envelope["result"]["table"].endswith("50 of 51 rows shown; 1 not in this table.")
    assert len(envelope.to_frame()) == 51


def test_probe_d5_a_pipe_in_a_cell_is_read_back_as_a_pipe(triage, cells_of):
    envelope = triage([{"host": "web|01", "days": 9, "note": "a || b"}], RULES, columns=["note"])
    lines = envelope["result"]["table"].split("\n")
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}
    assert cells_of(envelope["result"]["table"])[1] == ["web|01", "old", "a || b"]
    assert cells_of(envelope.to_markdown())[1][:3] == ["old", "web|01", "a || b"]
    assert "web|01" in str(envelope)


def hostile_answer(text):
    """A run with one hostile text everywhere an author's or a source's text can stand."""
    word = text.replace("/", "")  # a branch is also part of paths
    rules = rb.RuleSet(
        text,
        text,
        [rb.Rule({text: {"eq": text}}, word, label=text)],
        rb.Default("fine", label=text),
        unreadable=rb.Unreadable("declined", label=text),
        outside=[rb.Outside({"n": {"gt": 5}}, text, text)],
    )
    builder = rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="l", stage_name=text)
    builder = builder.add_decider(text, rules=rules, id="d", description=text)
    for word in rules.branches:
        builder = builder.branch(word, lambda s: None, description=text)
    each = builder.end().build()
    items = [{text: text, "n": 1}, {text: "y", "n": 1}, {"n": 1}, {text: text, "n": 9}]

    def procedure(tools):
        async def load(scope):
            scope["rows"] = (await tools.call("inv", {}))["result"]

        def collect(scope):
            scope["verdicts"] = [
                {
                    text: slot.item.get(text),
                    "verdict": slot.sentence.partition(" by ")[0],
                    "n": text,
                }
                for slot in scope["out"]
                if slot.status == "ok"
            ]
            scope["report"] = {text: text}
            scope["coverage"] = {"not_checked": [{"what": text, "why": text}]}
            scope.emit(text, text)

        return (
            rb.flow_chart(text, load, id="a", stage_name=text, description=text)
            .add_parallel_for_each(
                text,
                id="e",
                items=lambda s: s["rows"],
                branch=each,
                max_branches=3,
                into="out",
                subject=text,
            )
            .add_function(text, collect, id="z")
            .build()
        )

    inv = rb.define_tool(
        name="inv",
        description=text,
        execute=lambda args: rb.coverage(items, checked=[text], cannot_cover=[rb.Item(text, text)]),
    )
    tool = rb.runbook_as_tool(
        name="hostile",
        description=text,
        procedure=procedure,
        result_kind="verdict/x",
        rules=rules,
        verdicts={"decider": text, "units": {"n": text}},
    )
    return rb.Toolbox([inv, tool]).call_sync("hostile")


@pytest.mark.parametrize("text", HOSTILE)
def test_probe_d6_hostile_texts_show_as_texts_wherever_they_stand(text, cells_of):
    from markdown_it import MarkdownIt

    envelope = hostile_answer(text)
    views = [envelope, envelope.ledger, envelope.verdicts, envelope.walk]
    views += [envelope.why(row=n) for n in range(3)]
    for view in views:
        assert "cannot be shown" not in str(view)
        markdown = view.to_markdown()
        tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
        inline = [child for token in tokens for child in (token.children or ())]
        assert not [t for t in (*tokens, *inline) if t.type in ("html_block", "html_inline")]
        assert not [t for t in inline if t.type in ("image", "link_open")]
        rendered = MarkdownIt("commonmark").enable("table").render(markdown)
        assert "<img" not in rendered
        assert "</td></td>" not in rendered
    rows = cells_of(envelope.to_markdown())
    assert len({len(row) for row in rows}) == 1
    assert html.unescape(rows[1][1]).strip("`") == text or text in rows[1][1]
    lines = envelope["result"]["table"].split("\n\n")[0].split("\n")
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert json.loads(envelope.to_json()) == envelope


@pytest.mark.parametrize("name", ["<b>x</b>", "a|b", "a b", "é", "x" * 65])
def test_probe_d6_hostile_tool_names_are_no_names(name):
    with pytest.raises(rb.errors.DefinitionError, match="letters"):
        rb.runbook_as_tool(
            name=name,
            description="d",
            procedure=lambda tools: rb.flow_chart("c", lambda s: None, id="a").build(),
        )


def test_probe_d6_control_characters_and_overrides_are_shown_as_escapes(triage):
    envelope = triage([{"host": "a\x1b[31m\u202eb", "days": 9}], RULES)
    for text in (str(envelope), envelope.to_markdown(), str(envelope.why(row=0))):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\\x1b[31m\\u202eb" in str(envelope)


def test_probe_d7_a_long_text_is_cut_in_view_and_whole_one_step_away(triage, cells_of):
    long = "evidence " * 50
    name = "arn:aws:rds:us-east-2:310042817756:db:" + "0123456789abcdef" * 4
    envelope = triage([{"host": name, "days": 9, "note": long}], RULES, columns=["note"])
    markdown = envelope.to_markdown()
    assert "…" in markdown
    assert long.strip() not in markdown
    assert len(cells_of(markdown)[1][2]) <= 200
    assert envelope.verdicts[0]["note"] == long
    assert envelope.to_frame()["note"][0] == long
    assert long.strip() in envelope["result"]["table"]
    # A name is never cut in the middle.
    assert name in markdown
    assert name in envelope["result"]["table"]
    assert envelope.why(name).subject == name
