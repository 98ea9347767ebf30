# SPDX-License-Identifier: Apache-2.0
"""Live figures for admins: numbers of released reports, bands for pending and refused ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, prod
from typing import Final

from frankly_protocol.documents import SurveyDocument

from frankly_server.forms import estimated_blocks
from frankly_server.intake.times import next_release
from frankly_server.surveys.preview import planned

SMALL: Final = 10  # a smaller number could reveal that a single person has answered
_LADDER: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Number of released reports of one version, and the next release time (UTC)."""

    version: int
    digest: str
    n: int
    next_release: datetime


@dataclass(frozen=True, slots=True)
class BlockOutlook:
    """Expected precision of a block: current margin (half-width at 95%), and missing reports.

    margin : None with fewer than 10 reports, or if some shares cannot be estimated. more : reports
    missing for the target; 0 if it is reached, None if it cannot be reached.
    """

    block: str
    margin: float | None
    target: float
    more: int | None


@dataclass(frozen=True, slots=True)
class Live:
    """Figures of the intake page. n : number of released reports of all versions.

    accepted, pending, refusals : bands, because the exact numbers change with every report.
    """

    n: int
    accepted: str
    pending: str
    versions: Sequence[VersionCount]
    refusals: Mapping[str, str]
    outlook: Sequence[BlockOutlook]


def live(
    documents: Sequence[tuple[SurveyDocument, int]],
    accepted: int,
    refusals: Mapping[tuple[str, str], int],
    target: float,
    now: datetime,
) -> Live:
    """Return the live figures of a survey.

    documents : versions with their numbers of released reports. accepted : stored reports, pending
    or released. target : a half-width above 0. The outlook treats the released reports of all
    versions as reports of the newest version's mechanisms.
    """
    total = sum(n for _, n in documents)
    by_code: Counter[str] = Counter()
    for (_, code), n in refusals.items():
        by_code[code] += n
    return Live(
        n=total,
        accepted=band(accepted),
        pending=band(max(0, accepted - total)),
        versions=[
            VersionCount(
                document.version, document.digest, n, next_release(document.release_every, now)
            )
            for document, n in documents
        ],
        refusals={code: band(n) for code, n in sorted(by_code.items())},
        outlook=_outlook(documents[-1][0], total, target) if documents else [],
    )


def band(n: int) -> str:
    """Return a band such as “20 to 49”: exact numbers would show when a person answers."""
    if n == 0:
        return "none"
    if n < SMALL:
        return f"fewer than {SMALL}"
    # Bands of the series 1, 2, 5, 10, …: a single report rarely changes the band.
    power = 10 ** (len(str(n)) - 1)
    low = max(step * power for step in _LADDER if step * power <= n)
    high = min(step * power for step in (*_LADDER, 10) if step * power > n)
    return f"{low:,} to {high - 1:,}"


def expected_pending(choices: Iterable[int], step: int) -> int:
    """Return the expected number of pending reports: half a step in each cell (rounded down).

    choices : number of choices of each public question.
    """
    return prod(choices) * step // 2


def required_reports(document: SurveyDocument, margin: float) -> int | None:
    """Return the number of reports at which every half-width at 95% is at most `margin`.

    Returns None if some share cannot be estimated.
    """
    report_counts = []
    for block, share_of_reports in estimated_blocks(document):
        plan = planned(block.numbered_mechanism, block.design_prior)
        if plan is None:
            return None
        report_counts.append(ceil(plan.reports(margin) / share_of_reports))
    return max(report_counts)


def _outlook(document: SurveyDocument, n: int, target: float) -> list[BlockOutlook]:
    outlook = []
    for block, share_of_reports in estimated_blocks(document):
        plan = planned(block.numbered_mechanism, block.design_prior)
        shown = int(n * share_of_reports)
        margin = plan.margin(shown) if plan is not None and shown >= SMALL else None
        missing = (
            None if plan is None else max(0, ceil(plan.reports(target) / share_of_reports) - n)
        )
        outlook.append(BlockOutlook(block.id, margin, target, missing))
    return outlook
