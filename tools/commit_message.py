# SPDX-License-Identifier: Apache-2.0
"""Commit message check: subject of up to 72 characters, blank line, body with the reasons.

``python3 tools/commit_message.py FILE``; the pre-commit configuration runs it as a commit-msg hook.
"""

import sys
from pathlib import Path
from typing import Final

MAX_SUBJECT: Final = 72


def fault_of(message: str) -> str | None:
    """Return the fault of a commit message, or None. Merges, reverts and fixups need no body."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].rstrip() if lines else ""
    if not subject:
        return "the first line is the subject: say what changes"
    if len(subject) > MAX_SUBJECT:
        return f"the subject has {len(subject)} characters; use at most {MAX_SUBJECT}, and the body for the rest"
    if subject.startswith(("Merge ", "fixup! ", "squash! ", "Revert ")):
        return None
    if len(lines) > 1 and lines[1].strip():
        return "leave the second line empty: it separates the subject from the body"
    if not any(line.strip() for line in lines[2:]):
        return "add a body that says why, after an empty line"
    return None


if __name__ == "__main__":
    fault = fault_of(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit(f"commit message: {fault}" if fault else 0)
