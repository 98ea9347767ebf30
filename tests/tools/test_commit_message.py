# SPDX-License-Identifier: Apache-2.0
"""Check of commit messages."""

import pytest

from tools.commit_message import MAX_SUBJECT, fault_of

GOOD = {
    "a subject and a body": "Say why\n\nBecause.\n",
    "the longest subject": f"{'x' * MAX_SUBJECT}\n\nBecause.\n",
    "comments do not count": "Say why\n\n# a comment\nBecause.\n",
    "a merge": "Merge branch 'a'\n",
    "a fixup": "fixup! Say why\n",
}
BAD = {
    "nothing": ("", "subject"),
    "comments alone": ("# a comment\n", "subject"),
    "a long subject": (f"{'x' * (MAX_SUBJECT + 1)}\n\nBecause.\n", "72"),
    "no empty line": ("Say why\nBecause.\n", "second line"),
    "no body": ("Say why\n", "body"),
    "a body of comments": ("Say why\n\n# a comment\n", "body"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_message_passes(name: str) -> None:
    assert fault_of(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_a_bad_message_is_refused_with_the_reason(name: str) -> None:
    message, reason = BAD[name]
    assert reason in (fault_of(message) or "")
