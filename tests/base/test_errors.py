"""What errors say of foreign words: all of it can be seen, and none of it acts."""

from runbook_nb.errors import Problem, RuleError, RunbookError
from runbook_nb.playbooks.problems import FileProblem

FOREIGN = "k\x1b[31m\u202eX\x9b"
SHOWN = "k\\x1b[31m\\u202eX\\x9b"


def test_control_characters_of_foreign_words_are_escapes_wherever_they_got_into():
    error = RuleError(
        f"rules {FOREIGN}",
        fix=f"leave {FOREIGN} out",
        problems=[
            Problem(message=f"is {FOREIGN}", where=FOREIGN, fix=FOREIGN),
            FileProblem(message=f"is {FOREIGN}\n", where=FOREIGN, line=3),
        ],
    )
    assert str(error).splitlines() == [
        f"rules {SHOWN}; leave {SHOWN} out: 2 problems",
        f"  1. {SHOWN}: is {SHOWN}; {SHOWN}",
        f"  2. line 3, {SHOWN}: is {SHOWN}\\n",
    ]
    assert error.message == f"rules {FOREIGN}"  # who branches on it gets what was there


def test_lines_that_the_message_has_itself_stay_lines():
    assert str(RunbookError("first:\n  é\tb")) == "first:\n  é\\tb"
