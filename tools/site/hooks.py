# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does for this site beyond its own: tables that scroll, and files of the repository that pages name."""

import re
from typing import Any, Final

_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Let wide tables scroll by themselves on a phone, as regions that keyboards and screen readers find."""
    number = 0

    def boxed(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f'<div class="scroll" role="region" aria-label="Table {number}" tabindex="0">{match.group()}</div>'

    return _TABLE.sub(boxed, html)
