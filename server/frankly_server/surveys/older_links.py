# SPDX-License-Identifier: Apache-2.0
"""Links of a survey's earlier versions, which accept answers until their version closes.

Each link pins the document of one version, so publishing again changes no link that was given out.
"""

from collections.abc import Sequence
from typing import Final

from frankly_protocol.documents import SurveyDocument

_OLDER: Final = (
    "Links of earlier versions show the text of their version; while the survey is open they accept answers until "
    "it closes ({}). Estimates include these answers, which are released in batches of their own. A device "
    "that has answered one version does not answer another."
)


def older_links(documents: Sequence[SurveyDocument], newest: int) -> str:
    """Return a sentence about the links older than version `newest`; "" if none accepts answers.

    documents : the versions that have not closed (`Surveys.open_versions`).
    """
    times = [
        f"version {document.version}: {document.closes:%Y-%m-%d %H:%M} UTC"
        for document in documents
        if document.version < newest
    ]
    return _OLDER.format("; ".join(times)) if times else ""
