# SPDX-License-Identifier: Apache-2.0
"""Random answers by source, and the sources that have more of them than the others (spec 8.18)."""

from collections.abc import Sequence
from typing import Any

from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.source_flags import LEVEL, is_flagged, source_tests
from frankly_design.estimate.validity import Attention
from frankly_protocol.documents import SurveyDocument

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.groups import Group, groupings, sources_of
from frankly_server.analysis.random_answers import attention_of
from frankly_server.analysis.request import Request


def sources_json(documents: Sequence[Received], request: Request) -> dict[str, Any] | None:
    """Return how many people of each source answer at random; None unless estimates are by source.

    Of the versions whose sources the request groups by, and which have an instructed item or anchors. A
    source with fewer reports than the minimum, of which nothing is shown, has no part in it; `others`
    are the ids of those. The tests are None if only one is left, or if versions have different items
    or anchors: sources that answered different versions would then differ by what these ask.
    """
    own = [one for one in documents if sources_of(one.document) == request.by]
    if request.by is None or not own or request.is_dated:
        return None
    # Those of the newest version that have sources have the last word, as for all groups.
    groups = [
        Group({request.by: choice}, tuple(own), request.by, choice)
        for choice in groupings(own[-1].document)[request.by]
    ]
    found = [(group, attention_of(group, request)) for group in groups]
    told = [(group, one) for group, one in found if one is not None]
    if not told:
        return None
    alike = len({_asks(one.document) for one in own}) == 1
    tests = source_tests([one for _, one in told]) if alike else None
    z = normal_quantile(request.level)
    return {
        "question": request.by,
        "level": LEVEL,
        "sources": [
            _source(group, one, z, None if tests is None else tests[i], len(told))
            for i, (group, one) in enumerate(told)
        ],
        "others": [group.choice for group, one in found if one is None],
    }


def _asks(document: SurveyDocument) -> str:
    """Return the item and the anchors of a document as text: what tells who answers at random."""
    item = document.instructed
    anchors = {
        block.id: [one.to_json() for one in block.questions]
        for view in document.versions
        for block in view.blocks
        if any(one.anchor is not None for one in block.questions)
    }
    return repr((None if item is None else item.to_json(), sorted(anchors.items())))


def _source(
    group: Group, attention: Attention, z: float, p: float | None, sources: int
) -> dict[str, Any]:
    low, high = attention.ends(z)
    return {
        "source": group.choice,
        "n": attention.n,
        "random": attention.random,
        "random_low": low,
        "random_high": high,
        "p": p,
        "flagged": p is not None and is_flagged(p, sources),
    }
