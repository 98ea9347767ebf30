# SPDX-License-Identifier: Apache-2.0
"""What an admin may watch while reports come in: numbers of reports and refusals, never an answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frankly_protocol.documents import SurveyDocument

from frankly_server.surveys.preview import planned

SMALL: Final = 10
"""Numbers from 1 to 9 are shown as "fewer than 10": watched closely, they would tell who just answered."""


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Reports of one version; n is None while there are 1 to 9."""

    version: int
    digest: str
    n: int | None


@dataclass(frozen=True, slots=True)
class BlockOutlook:
    """A block's expected precision: half-width at 95% with the reports there are, and how many more a target needs.

    margin : None with fewer than 10 reports, or if some shares cannot be estimated. more : reports still missing for
    the target; 0 if it is met, None if it cannot be.
    """

    block: str
    margin: float | None
    target: float
    more: int | None


@dataclass(frozen=True, slots=True)
class Live:
    """Everything the intake page shows. n : over all versions, None while it is small."""

    n: int | None
    versions: Sequence[VersionCount]
    refusals: Mapping[str, int | None]
    outlook: Sequence[BlockOutlook]


def live(
    documents: Sequence[tuple[SurveyDocument, int]], refusals: Mapping[tuple[str, str], int], target: float
) -> Live:
    """Return the figures of a survey's versions with their numbers of reports; target is a half-width, above 0.

    The outlook is the newest version's: earlier ones add to it (estimates pool them), so that it errs to more reports.
    """
    total = sum(n for _, n in documents)
    by_code: Counter[str] = Counter()
    for (_, code), n in refusals.items():
        by_code[code] += n
    return Live(
        n=shown(total),
        versions=[VersionCount(d.version, d.digest, shown(n)) for d, n in documents],
        refusals={code: shown(n) for code, n in sorted(by_code.items())},
        outlook=_outlook(documents[-1][0], total, target) if documents else [],
    )


def shown(n: int) -> int | None:
    """Return a number that may be shown, or None for one from 1 to 9."""
    return None if 0 < n < SMALL else n


def needed(document: SurveyDocument, margin: float) -> int | None:
    """Return how many reports give every share of every block this half-width at 95%, or None if none do."""
    wanted = []
    for block in document.blocks:
        plan = planned(block.mechanism, block.design_prior)
        if plan is None:
            return None
        wanted.append(plan.reports(margin))
    return max(wanted)


def _outlook(document: SurveyDocument, n: int, target: float) -> list[BlockOutlook]:
    found = []
    for block in document.blocks:
        plan = planned(block.mechanism, block.design_prior)
        margin = plan.margin(n) if plan is not None and n >= SMALL else None
        more = None if plan is None else max(0, plan.reports(target) - n)
        found.append(BlockOutlook(block.id, margin, target, more))
    return found
