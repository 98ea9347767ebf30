# SPDX-License-Identifier: Apache-2.0
"""How many reports each arm has, and the test that devices drew them with the signed chances (spec 8.16)."""

from collections.abc import Sequence
from math import ceil, floor, prod
from typing import Any, Final

from frankly_design.estimate.split_plan import sizes_test
from frankly_design.kinds.parts import cell_questions

from frankly_server.analysis.counted_document import Received

_STEPS: Final = 64
"""Number of totals for which the test is tried."""


def arms_json(documents: Sequence[Received]) -> list[dict[str, Any]]:
    """Return the sizes of the arms of each document that has arms, oldest first.

    Before any figures of arms are compared: arms that lose people differently, or devices that do not
    draw as they should, make them differ even if nobody answers differently. Without as many reports as the
    document's minimum there is no test.
    """
    by_document: dict[str, list[Received]] = {}
    for source in documents:
        if source.document.arm is not None:
            by_document.setdefault(source.document.digest, []).append(source)
    return [_sizes(sources) for sources in by_document.values()]


def _sizes(sources: Sequence[Received]) -> dict[str, Any]:
    document = sources[0].document
    assert document.arms is not None  # noqa: S101 - the caller has looked
    chances = [arm.chance for arm in document.arms.arms]
    counts = [source.n for source in sources]
    is_tested = sum(counts) >= document.min_reports
    return {
        "document": document.digest,
        "version": document.version,
        "name": document.arms.id,
        "arms": [
            {"arm": arm.id, "n": n, "chance": chance}
            for arm, n, chance in zip(document.arms.arms, counts, chances, strict=True)
        ],
        "p": largest_p(counts, chances, [_waiting(source) for source in sources])
        if is_tested
        else None,
    }


def _waiting(source: Received) -> int:
    """Return the largest number of reports of an arm that are in no batch: less than a step in each cell."""
    document = source.document
    cells = prod(len(question.choices) for question in cell_questions(document))
    return cells * (document.release_step - 1)


def largest_p(counts: Sequence[int], chances: Sequence[int], waiting: Sequence[int]) -> float:
    """Return the largest p-value of the test of the sizes, over what may be waiting in each arm.

    counts, waiting : released reports of each arm, and the most that may wait or have been left out. A
    rare arm waits longer, which must not look as if people had left it. Totals of many sizes are tried.
    """
    low = [n / chance for n, chance in zip(counts, chances, strict=True)]
    high = [(n + more) / c for n, more, c in zip(counts, waiting, chances, strict=True)]
    # Where an arm begins or ends to fit, and between: with rare arms a step of all would be too wide.
    grid = (min(low) + (max(high) - min(low)) * i / _STEPS for i in range(_STEPS + 1))
    return max(
        sizes_test(
            [
                min(max(rounded(scale * chance), n), n + more)
                for n, more, chance in zip(counts, waiting, chances, strict=True)
            ],
            chances,
        )
        for scale in (*low, *high, *grid)
        for rounded in (floor, ceil)
    )
