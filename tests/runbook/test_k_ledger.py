"""Cases 111 to 119: the ledger and its sentence, and every kind of gap."""

from __future__ import annotations

import pytest

import runbook_nb as rb


def whats(envelope, section):
    return [item["what"] for item in envelope["af_coverage"].get(section, [])]


def fan_out(row, items, cap=50, rules=None, subject=None, **more):
    """A procedure that fans out over items and writes a row per decided subject."""
    rules = rules or rb.RuleSet(
        "r", "1", [rb.Rule({"n": {"gt": 5}}, "big", label="b")], default="small"
    )

    def procedure(tools):
        each = (
            rb.flow_chart("one", row, id="row", stage_name="Read")
            .add_decider("Size", rules=rules, id="size")
            .branch("big", lambda s: None)
            .branch("small", lambda s: None)
            .end()
            .build()
        )

        def collect(scope):
            scope["verdicts"] = [
                {"subject": slot.item, "verdict": "seen"} for slot in scope["out"] if slot.sentence
            ]

        return (
            rb.flow_chart("sizes", lambda s: s.set("xs", items), id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: s["xs"],
                branch=each,
                max_branches=cap,
                into="out",
                subject=subject,
            )
            .add_function("Collect", more.get("collect", collect), id="z")
            .build()
        )

    return procedure


def fan_out_of_factories(row):
    """A fan-out whose charts cannot even be made."""

    def procedure(tools):
        return (
            rb.flow_chart("sizes", lambda s: s.set("xs", [1, 2]), id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: s["xs"],
                branch=lambda item, n: row(item),
                max_branches=9,
                into="out",
            )
            .add_function("Collect", lambda s: s.set("verdicts", []), id="z")
            .build()
        )

    return procedure


def size(scope):
    scope["n"] = scope.args["item"]


def answer(kit, procedure, **more):
    return kit.ask(None, procedure=procedure, result_kind="verdict/x", **more)


def test_case_111_the_three_sources_in_their_order(call):
    ledger = call()["af_coverage"]
    checked = ledger["checked"]
    assert checked[0]["what"] == "the seeded inventory"
    assert "'backup-protection-triage'" in checked[1]["what"]
    assert "15 step(s)" in checked[1]["what"]
    assert "health-signal v1" in checked[1]["what"]
    assert "3 row(s)" in checked[1]["why"]
    assert ledger["cannot_cover"] == [{"what": "WHY paused", "why": "no change record"}]
    assert ledger["not_checked"][0]["what"] == "clusters that report to nobody"
    assert ledger["not_checked"][1]["what"].startswith("1 row(s)")
    assert "NO classification" in ledger["not_checked"][1]["what"]
    assert "declined" in ledger["not_checked"][1]["what"]


def test_case_112_the_sentence_says_it_all(call):
    sentence = call()["af_coverage"]["sentence"]
    parts = ["Ran 'backup-protection-triage'", "health-signal v1", "15 step(s)", "3 row(s)"]
    parts += ["1 declined", "2 not-checked"]
    places = [sentence.index(part) for part in parts]
    assert places == sorted(places)
    assert sentence.endswith(".")
    assert sentence.count(".") == 1


def test_case_113_without_a_stamp_the_sentence_names_no_rules(kit):
    envelope = answer(kit, fan_out(size, [1, 9]))
    assert envelope["result"]["rule_version"] == "undeclared"
    assert envelope["af_coverage"]["sentence"].startswith("Ran 'sizes' — ")
    checked = whats(envelope, "checked")
    assert checked[0] == "the declared procedure 'sizes' — 11 step(s) recorded"
    assert checked[1] == "decisions judged by rule set r 1"


def test_case_114_what_is_not_there_is_not_mentioned(call, kit):
    rows = [{"subject": "a", "age_days": 1, "age_known": True}]
    sentence = call(rows=rows, gaps=False)["af_coverage"]["sentence"]
    assert sentence.endswith("1 row(s) assessed.")
    other = kit.ask(lambda s: None)["af_coverage"]["sentence"]
    assert other == "Ran 'c' — 1 step(s) recorded."


def test_case_115_the_same_ground_is_listed_once(kit):
    async def body(scope, tools):
        await tools.call("backup_inventory", {})
        await tools.call("backup_inventory", {})

    envelope = rb.Toolbox([kit.inventory(), kit.calling(body)]).call_sync("asker")
    assert whats(envelope, "checked").count("the seeded inventory") == 1


def test_case_116_the_procedures_own_coverage_is_read_leniently(kit):
    said = {
        "checked": ["  x ", ""],
        "notChecked": [{"what": "y", "why": 5}],
        "cannot_cover": ["z", {"what": "  "}],
    }
    ledger = kit.ask(lambda s: s.set("coverage", said))["af_coverage"]
    assert ledger["checked"][0] == {"what": "x"}
    assert ledger["not_checked"] == [{"what": "y"}]
    assert ledger["cannot_cover"] == [{"what": "z"}]


def test_case_116_the_snake_spelling_wins_also_when_empty(kit):
    said = {"not_checked": [], "notChecked": ["hidden"]}
    assert "not_checked" not in kit.ask(lambda s: s.set("coverage", said))["af_coverage"]
    said = {"not_checked": None, "notChecked": ["seen"]}
    assert kit.ask(lambda s: s.set("coverage", said))["af_coverage"]["not_checked"] == [
        {"what": "seen"}
    ]


@pytest.mark.parametrize("value", [["a"], "a", 7, None])
def test_case_117_coverage_that_is_no_mapping_costs_nothing(kit, value):
    ledger = kit.ask(lambda s: s.set("coverage", value))["af_coverage"]
    assert [item["what"] for item in ledger["checked"]] == [
        "the declared procedure 'c' — 1 step(s) recorded"
    ]


def test_case_118_a_survived_absence_is_in_the_ledger(kit):
    async def body(scope, tools):
        await tools.call("backup_inventory", {}, allow_absent=True)

    inventory = kit.inventory(answer=rb.absent("rows", checked=["the store"]))
    envelope = rb.Toolbox([inventory, kit.calling(body)]).call_sync("asker")
    assert whats(envelope, "checked")[0] == "the store"


def test_case_119_key_order_and_empty_lists(call, kit):
    assert list(call()["af_coverage"]) == [
        "checked",
        "not_checked",
        "cannot_cover",
        "note",
        "sentence",
    ]
    assert list(kit.ask(lambda s: None)["af_coverage"]) == ["checked", "note", "sentence"]


# -- gaps ------------------------------------------------------------------------------------


def test_each_kind_of_gap_is_one_entry_with_its_count_and_its_first_subjects(kit):
    def row(scope):
        item = scope.args["item"]
        if item < 3:
            raise KeyError("age")
        if item < 5:
            scope.stop("nothing to judge")
        scope["n"] = item

    envelope = answer(kit, fan_out(row, list(range(30)), cap=10))
    ledger = {item["what"]: item["why"] for item in envelope["af_coverage"]["not_checked"]}
    assert list(ledger) == [
        "20 subject(s) of 'Each' not reached",
        "3 subject(s) of 'Each' whose branch failed",
        "2 subject(s) of 'Each' that ended before a decision",
    ]
    past, failed, undecided = ledger.values()
    assert past.startswith("past the cap of 10 branches: 10, 11, 12,")
    assert past.endswith("19 and 10 more")
    assert failed == "0, 1, 2; the first: KeyError: 'age' in stage 'Read'"
    assert undecided.endswith(": 3, 4")


def test_nested_fan_outs_are_counted_too_over_all_their_runs(kit):
    rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 5}}, "big")], default="small")

    def load(scope):
        if scope.args["item"] == 7:
            raise ValueError("seven")
        scope["n"] = scope.args["item"]

    def procedure(tools):
        disk = (
            rb.flow_chart("disk", load, id="load", stage_name="Load")
            .add_decider("Size", rules=rules, id="size")
            .branch("big", lambda s: None)
            .branch("small", lambda s: None)
            .end()
            .build()
        )
        host = (
            rb.flow_chart("host", lambda s: s.set("disks", s.args["item"]), id="host")
            .add_parallel_for_each(
                "Disks",
                id="disks",
                items=lambda s: s["disks"],
                branch=disk,
                max_branches=2,
                into="out",
            )
            .build()
        )

        def collect(scope):
            scope["verdicts"] = [
                {"disk": inner.item, "verdict": "seen"}
                for outer in scope["hosts"]
                for inner in outer.value
                if inner.status == "ok"
            ]

        return (
            rb.flow_chart("c", lambda s: s.set("xs", [[1, 2, 3], [7, 8], []]), id="a")
            .add_parallel_for_each(
                "Hosts",
                id="hosts",
                items=lambda s: s["xs"],
                branch=host,
                max_branches=9,
                into="hosts",
            )
            .add_function("Collect", collect, id="z")
            .build()
        )

    envelope = kit.ask(
        None, procedure=procedure, result_kind="verdict/x", verdicts={"decider": "Size"}
    )
    assert whats(envelope, "not_checked") == [
        "nothing was assessed by 'Disks': it was given no subject in 1 of 3 runs",
        "1 subject(s) of 'Disks' not reached",
        "1 subject(s) of 'Disks' whose branch failed",
    ]
    assert envelope.why(8).sentence == "big by rule 1 of r 1: n 8 > 5"
    assert "5 subjects (3 seen, 1 failed, 1 not reached)" in repr(envelope)
    assert [row.type for row in envelope.why(8).walk()].count("condition") == 1
    assert "n 8 > 5" in str(envelope.why(8))
    with pytest.raises(LookupError, match="no path: not reached"):
        envelope.why(3).walk()


def test_branches_without_a_decider_of_their_own_are_not_undecided(kit):
    def procedure(tools):
        each = rb.flow_chart("one", lambda s: 1, id="one").build()
        return (
            rb.flow_chart("c", lambda s: s.set("xs", [1, 2]), id="a")
            .add_parallel_for_each(
                "Each", id="e", items=lambda s: s["xs"], branch=each, max_branches=9, into="out"
            )
            .build()
        )

    assert "not_checked" not in kit.ask(None, procedure=procedure)["af_coverage"]


def test_rows_that_do_not_match_the_record_are_spoken_of(kit):
    def collect(scope):
        scope["verdicts"] = [{"subject": "x", "verdict": "fine"}]

    envelope = answer(kit, fan_out(size, [1, 2, 3], collect=collect))
    assert whats(envelope, "not_checked") == [
        "the rows do not match the record: 1 row, 3 subjects decided"
    ]


def test_rows_of_a_decider_outside_any_fan_out_are_not_held_against_fan_outs(kit):
    inner = fan_out(size, [1, 2, 3])

    def procedure(tools):
        chart = inner(tools)
        rules = rb.RuleSet("whole", "1", [rb.Rule({"xs": {"exists": True}}, "ok")])
        builder = rb.flow_chart("c", lambda s: s.set("xs", [1, 2]), id="a0")
        builder._stages.extend(chart.stages[1:2])
        return (
            builder.add_decider("Whole", rules=rules, id="whole")
            .branch("ok", lambda s: s.set("verdicts", [{"subject": "all", "verdict": "ok"}]))
            .end()
            .build()
        )

    envelope = answer(kit, procedure, verdicts={"decider": "Whole"})
    assert "not_checked" not in envelope["af_coverage"]
    assert envelope.why(row=0).sentence.startswith("ok by rule 1 of whole 1")


def test_nothing_to_assess_is_one_entry(kit):
    for procedure in (fan_out(size, []), kit.one_stage(lambda s: None)):
        said = whats(answer(kit, procedure), "not_checked")
        assert len(said) == 1
        assert said[0].startswith("nothing was assessed")


def test_everything_failed_is_no_empty_answer(kit):
    def row(scope):
        raise KeyError("age")

    envelope = answer(kit, fan_out(row, [1, 2]))
    assert repr(envelope) == "<Envelope restart_probe · rules undeclared · 2 subjects (2 failed)>"
    assert whats(envelope, "not_checked") == ["2 subject(s) of 'Each' whose branch failed"]
    factory = fan_out_of_factories(row)
    assert "2 subjects (2 failed)" in repr(answer(kit, factory))


def test_subjects_without_a_row_are_counted_beside_the_verdicts(kit):
    def row(scope):
        if scope.args["item"] == 3:
            scope.stop()
        scope["n"] = scope.args["item"]

    envelope = answer(kit, fan_out(row, [1, 2, 3]))
    assert "3 subjects (2 seen, 1 without a row)" in repr(envelope)


# -- rules that judged, and those declared -----------------------------------------------------


def test_a_stamp_that_fits_is_not_questioned(call, kit):
    for stamp in ({"name": "health-signal", "version": "v1"}, kit.posture()):
        envelope = call(gaps=False, stamp=stamp)
        assert len(whats(envelope, "not_checked")) == 1
        assert len(whats(envelope, "checked")) == 2


def questioned(kit, stamp, judged):
    envelope = answer(kit, fan_out(size, [1, 9], rules=judged), rules=stamp)
    return whats(envelope, "checked"), whats(envelope, "not_checked")


def rule_set(version="1", limit=5, name="r"):
    return rb.RuleSet(name, version, [rb.Rule({"n": {"gt": limit}}, "big")], default="small")


def test_a_stamp_of_another_version_is_spoken_of_and_both_are_named(kit):
    for stamp in ({"name": "r", "version": "2"}, rule_set("2")):
        checked, not_checked = questioned(kit, stamp, rule_set("1"))
        assert "under r 2" in checked[0]
        assert checked[1] == "decisions judged by rule set r 1"
        assert not_checked == ["whether the stamp r 2 fits: the decisions were judged by r 1"]


def test_equal_names_with_other_content_are_spoken_of(kit):
    _, not_checked = questioned(kit, rule_set(limit=7), rule_set(limit=5))
    assert not_checked == [
        "whether the stamp r 1 fits: the decisions were judged by r 1 of other content"
    ]


def test_the_stamp_of_a_rule_set_is_its_name_and_version(kit):
    envelope = answer(kit, fan_out(size, [1], rules=rule_set("7")), rules=rule_set("7"))
    assert envelope["result"]["rule_version"] == "7"
    assert "under r 7" in envelope["af_coverage"]["sentence"]


# -- what rules declare ------------------------------------------------------------------------


def test_ground_outside_the_rules_cannot_be_covered(kit):
    outside = [rb.Outside({"n": {"gt": 100}}, "hosts on x", "the scanner has no data for it")]
    rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 5}}, "big")], "small", outside=outside)
    envelope = answer(kit, fan_out(size, [1, 200], rules=rules))
    assert envelope["af_coverage"]["cannot_cover"] == [
        {"what": "hosts on x", "why": "the scanner has no data for it"}
    ]
    assert envelope.why(200).decision.branch == "declined"


def test_reading_an_unreadable_value_as_something_is_declared_on_every_run(kit):
    rules = rb.RuleSet(
        "r",
        "1",
        [rb.Rule({"n": {"gt": 5}}, "big")],
        "small",
        unreadable=rb.Unreadable("small", label="no size means small"),
    )
    envelope = answer(kit, fan_out(size, [1], rules=rules))
    [item] = [i for i in envelope["af_coverage"]["checked"] if "could not be read" in i["what"]]
    assert item["what"] == "values that could not be read were taken as 'small'"
    assert "no size means small" in item["why"]


def test_limits_nobody_crosses_and_limits_of_another_type_are_noted(kit):
    rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 5}}, "big", unit="percent")], "small")
    one_side = answer(kit, fan_out(size, [n / 20 for n in range(12)], rules=rules))
    assert "all 12 values of n" in whats(one_side, "not_checked")[0]
    mismatch = answer(kit, fan_out(size, ["1", "2"], rules=rules))
    assert any("could never be judged" in what for what in whats(mismatch, "not_checked"))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("small", ["the rows do not match the record: 3 rows, 2 subjects decided"]),
        ("declined", []),
    ],
)
def test_only_declined_can_be_the_verdict_of_a_subject_whose_branch_failed(kit, word, said):
    def row(scope):
        if scope.args["item"] == 1:
            raise ValueError("unreachable")
        size(scope)

    def collect(scope):
        scope["verdicts"] = [
            {"subject": slot.item, "verdict": "small" if slot.sentence else word}
            for slot in scope["out"]
        ]

    procedure = fan_out(row, [1, 2, 3], collect=collect)
    answer = kit.ask(None, procedure=procedure, result_kind="verdict/size")
    assert [w for w in whats(answer, "not_checked") if "do not match" in w] == said


LIMIT = {"type": "object", "properties": {"limit": {"type": "integer"}}}


def limited(schema=LIMIT, inner=None):
    """A runbook with an input, and a source that has one too."""
    source = rb.define_tool(
        name="ages", description="d", execute=lambda args: [1], input_schema=LIMIT
    )

    def procedure(tools):
        async def look(scope):
            await tools.call("ages", inner or {"limit": 1})
            scope["verdicts"] = []

        return rb.flow_chart("c", look, id="look").build()

    runbook = rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=procedure,
        result_kind="verdict/x",
        input_schema=schema,
        composed_of=["ages"],
    )
    return rb.Toolbox([source, runbook])


def misspelt(envelope):
    found = envelope["af_coverage"]["not_checked"]
    return [(one["what"], one["why"]) for one in found if "declares none" in one["what"]]


def test_an_input_nobody_declared_and_one_letter_off_is_spoken_of():
    said = misspelt(limited().call_sync("r", {"lmit": 5, "region": "eu"}))
    assert said == [
        (
            "whether r read the input 'lmit': it declares none of that name",
            "did you mean 'limit'? A schema that says additionalProperties: false refuses such an "
            "input",
        )
    ]
    inner = misspelt(limited(inner={"limt": 2}).call_sync("r", {"limit": 5}))
    assert [what for what, _ in inner] == [
        "whether ages read the input 'limt': it declares none of that name"
    ]


@pytest.mark.parametrize("word", [True, {"type": "integer"}])
def test_what_the_author_says_of_other_names_is_his_word(word):
    box = limited({**LIMIT, "additionalProperties": word})
    assert misspelt(box.call_sync("r", {"lmit": 5})) == []
    assert misspelt(limited().call_sync("r", {"limit": 5})) == []
