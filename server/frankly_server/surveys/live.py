# SPDX-License-Identifier: Apache-2.0
"""What an admin may watch while reports come in: numbers of reports and refusals, never an answer."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import prod
from typing import Final

from frankly_protocol.documents import SurveyDocument

from frankly_server.surveys.preview import planned
from frankly_server.times import next_release

SMALL: Final = 10
_LADDER: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Released reports of one version, and when more may be released (UTC)."""

    version: int
    digest: str
    n: int
    next_release: datetime


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
    """Everything the intake page shows. n : released reports of all versions.

    accepted, pending, refusals : in bands, as they change with every report.
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
    """Return the figures of a survey's versions with their released reports; target is a half-width, above 0.

    accepted : reports that are stored, pending or released. The outlook is the newest version's: earlier ones add to
    it (estimates pool them), so that it errs to more reports.
    """
    total = sum(n for _, n in documents)
    by_code: Counter[str] = Counter()
    for (_, code), n in refusals.items():
        by_code[code] += n
    return Live(
        n=total,
        accepted=band(accepted),
        pending=band(max(0, accepted - total)),
        versions=[VersionCount(d.version, d.digest, n, next_release(d.release_every, now)) for d, n in documents],
        refusals={code: band(n) for code, n in sorted(by_code.items())},
        outlook=_outlook(documents[-1][0], total, target) if documents else [],
    )


def band(n: int) -> str:
    """Return a number as a band, in words: watched closely, the number itself would tell when somebody answers."""
    if n == 0:
        return "none"
    if n < SMALL:
        return f"fewer than {SMALL}"
    power = 10 ** (len(str(n)) - 1)
    low = max(step * power for step in _LADDER if step * power <= n)
    high = min(step * power for step in (*_LADDER, 10) if step * power > n)
    return f"{low:,} to {high - 1:,}"


def waiting(choices: Iterable[int], step: int) -> int:
    """Return how many reports are expected to be pending at any time: half a step in each cell.

    choices : of each public question, how many.
    """
    return prod(choices) * step // 2


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
