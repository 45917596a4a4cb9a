"""Whatever is asked of whichever plan: its journal gives the same plan, and is not contradicted."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from journal_runs import Run, acts, playbooks, policies
from journals import Clock

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.events import replay
from runbook_nb.playbooks.journal_jsonl import JsonlJournal


class Places:
    """Gives a journal of one file, anew each time; the one before lets it go as its kernel died."""

    def __init__(self, path):
        self.path, self.open = path, None

    def __call__(self):
        self.close()
        self.open = JsonlJournal(self.path)
        return self.open

    def close(self):
        if self.open is not None:
            self.open.close()


@given(
    playbooks(),
    policies(),
    st.lists(acts(), max_size=14),
    st.fixed_dictionaries(
        {
            "redact": st.sampled_from((None, None, {"keys": ["token"]})),
            "block_violations": st.booleans(),
            "record_violations": st.booleans(),
        }
    ),
)
@settings(max_examples=60, deadline=None)
def test_a_journal_of_any_run_gives_its_plan_and_is_never_contradicted(book, policy, told, more):
    with TemporaryDirectory() as folder:
        places = Places(Path(folder, "ir.jsonl"))
        try:
            run = Run(book, policy, Clock(), places, **more)
        except PlaybookDefinitionError:
            return  # the policy refuses the playbook
        for act in told:
            run.act(*act)
        live = run.enforcer
        journal = JsonlJournal(places.path)
        state = replay(journal.events())
        assert state.plan == live.plan
        assert state.violations == live.violations
        checked = journal.verify(head=journal.head)
        assert checked.ok, [claim.sentence for claim in checked.contradicted]
        places.close()
        again = PlaybookEnforcer.resume(journal, redact=more["redact"])
        assert again.plan == live.plan
        assert again.violations == live.violations
        assert again.terms.steps == live.terms.steps
        assert [c.call_id for c in again.calls] == [c.call_id for c in live.calls]
        journal.close()
