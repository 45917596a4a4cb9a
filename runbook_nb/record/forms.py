"""The names of our own written forms, which a redaction policy must not make unreadable.

Record layer. A structure, a ledger, an error, a rule set, a dossier and an answer are written as
mappings; the keys listed here are ours in all of them. A secret is never told by being one.
"""

from __future__ import annotations

from typing import Final

#: Under these names stand words that say what something is; they are ours too.
OUR_WORDS: Final = frozenset({"format", "kind", "status", "type"})

#: Keys of the forms.
OUR_NAMES: Final = OUR_WORDS | frozenset(
    """
    added af_coverage af_provenance branch by_branch cannot_cover cap causes checked code
    codes columns_bytes columns_complete columns_form columns_kind columns_note columns_ref
    columns_rows columns_total complete content counts coverage decided decider decides
    decision default description detail digest dossier edges envelope execution failed
    fan_outs groups has_decider hidden id in index into items judges key label
    max_concurrency members message name nodes not_checked not_reached note ok outcome
    outside past_cap procedure projection ranked reason recording_bytes recording_kind
    recording_note recording_ref ref render_note report report_note result rows
    rows_complete rows_shown rows_total rule_sets rule_version rules runtime_stage_id
    sentence shown source stage stage_id stage_name stamp steps_executed structure subject
    subjects subjects_total table tags target template then told tool toolCallId total
    undecided unit units unreadable values verdict verdict_meanings verdicts version walk
    walk_segment what when where why
    """.split()  # noqa: SIM905 - a list this long reads better as words
)
