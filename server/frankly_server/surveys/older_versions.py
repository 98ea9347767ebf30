# SPDX-License-Identifier: Apache-2.0
"""What a survey's earlier versions go on doing: their links accept answers, their minimum counts.

Each link pins the document of one version, so publishing again changes no link that was given out.
"""

from collections.abc import Sequence
from typing import Final

from frankly_protocol.documents import SurveyDocument

_LINKS: Final = (
    "Links of earlier versions show the text of their version; while the survey is open they accept answers until "
    "it closes ({}). Estimates include these answers, which are released in batches of their own. A device "
    "that has answered one version does not answer another."
)
_MINIMUM: Final = (
    "Version {} promised its respondents no result with fewer than {} answers. Every result that includes answers to "
    "that version needs {}, not {}."
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
    return _LINKS.format("; ".join(times)) if times else ""


def larger_minimum(documents: Sequence[SurveyDocument], min_reports: int) -> tuple[str, ...]:
    """Return a warning if a version has a larger minimum than `min_reports`; () if none has.

    documents : every version (`Surveys.versions`), because estimates include closed ones too.
    """
    if not documents:
        return ()
    largest = max(documents, key=lambda document: document.min_reports)
    if largest.min_reports <= min_reports:
        return ()
    needed = largest.min_reports
    return (_MINIMUM.format(largest.version, needed, needed, min_reports),)
