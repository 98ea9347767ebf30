# SPDX-License-Identifier: Apache-2.0
"""People who answer at random: their number, and figures corrected for them (spec 8.15)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from typing import Any, Final

import numpy as np
from frankly_protocol.blocks import Question
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.groups import Group
from frankly_server.analysis.part import Part
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.pooling import Pooled
from frankly_server.analysis.random_law import random_law
from frankly_server.analysis.request import VERSION, Request
from frankly_server.analysis.rows import possible
from frankly_server.analysis.tables import Table
from frankly_server.analysis.versions import covariance_at
from frankly_server.arrays import FloatArray
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.figures import Figures
from frankly_server.estimate.margins import Pairs, normal_quantile
from frankly_server.estimate.validity import (
    BY_GROUP,
    LEAST_TESTED,
    SHOWN,
    Item,
    Observed,
    corrected,
    law_test,
    same_share,
    without_noise_of,
)
from frankly_server.lazy import special
from frankly_server.store import day_of

IMPRECISE: Final = "too_few_attentive"
"""Flag of corrected figures that are not shown, because the share who answer at random is not known well."""
UNBOUNDED: Final = "corrected_unbounded"
IMPOSSIBLE: Final = "corrected_impossible"
UNKNOWN_LAW: Final = "random_law_unknown"
"""Flag of figures whose law has too many combinations, or gives every choice of a version no weight."""


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the instructed item in the reports of one group.

    items : results per document, by digest. is_common : True if they are those of all groups
    together. p : of the test that all groups fail equally often, or None.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    is_common: bool = False
    p: float | None = None

    def share(self, digests: Sequence[str], level: float) -> tuple[float, float, float]:
        """Return λ̂ of these documents together, weighted by reports, with the ends of its interval.

        Items can differ in their choices, so the distances of the ends are combined, as for sums.
        """
        items = self.counted(digests)
        total, z = sum(item.n for item in items), normal_quantile(level)
        share = sum(item.n * item.random for item in items) / total
        ends = [item.ends(z) for item in items]
        below, above = (
            hypot(
                *(i.n / total * (i.random - end[side]) for i, end in zip(items, ends, strict=True))
            )
            for side in (0, 1)
        )
        return share, share - below, share + above

    def counted(self, digests: Sequence[str]) -> list[Item]:
        """Return the results of some documents; those of all groups once, whatever the document."""
        items = [self.items[digest] for digest in digests]
        return items[:1] if self.is_common else items


def require_stated(documents: Sequence[Received], request: Request) -> None:
    """Raise InvalidInput if the request states a law of random answers that cannot be used."""
    if request.random_law is None:
        return
    if all(source.document.instructed is None for source in documents):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "no version of this survey has an instructed item, so no figure is corrected: leave it out",
            "random",
        )
    known: dict[str, set[str]] = {}
    for source in documents:
        for question in source.document.questions.values():
            known.setdefault(question.id, set()).update(choice.id for choice in question.choices)
    for name, weights in request.random_law.items():
        if not weights.keys() <= known.get(name, set()):
            raise InvalidInput(
                Problem.TARGETS_INVALID,
                "the survey has no such question or choice: see its document",
                f"random.{name}",
            )


def results_of(groups: Sequence[Group], request: Request) -> list[Results]:
    """Return the results of the groups of one table, in their order.

    A group is corrected by its own results if all groups are precise enough, or if their items
    differ; otherwise by those of all groups. Versions have separate results. Groups below their
    documents' minimum, of which nothing is shown, have no part in this.
    """
    own = [
        {
            source.document.digest: item
            for source in group.sources
            if (item := _item(source, group, request))
        }
        for group in groups
    ]
    shown = [
        items
        for group, items in zip(groups, own, strict=True)
        if sum(item.n for item in items.values()) >= _least(group)
    ]
    if len(shown) < 2 or request.group == VERSION:
        return [Results(items) for items in own]
    totals = [_together(items.values()) for items in shown]
    p = None if None in totals else same_share([total for total in totals if total is not None])
    every = _together([item for items in shown for item in items.values()])
    is_precise = all(item.within(BY_GROUP) for items in shown for item in items.values())
    if every is None or is_precise:
        return [Results(items, p=p) for items in own]
    return [Results(dict.fromkeys(items, every), is_common=True, p=p) for items in own]


def _least(group: Group) -> int:
    return max(source.document.min_reports for source in group.sources)


def _together(items: Iterable[Item]) -> Item | None:
    """Return the results of several groups of reports together; None if their items differ."""
    listed = list(items)
    if len({item.choices for item in listed}) != 1:
        return None
    return Item(sum(i.n for i in listed), sum(i.failed for i in listed), listed[0].choices)


def _item(source: Received, group: Group, request: Request) -> Item | None:
    """Return the item's results in a group's reports; None without an item or reports."""
    item, n, failed = source.document.instructed, 0, 0
    if item is None:
        return None
    for batch in source.batches:
        answers: Mapping[str, str] = json.loads(batch.stratum) if batch.stratum else {}
        period = (
            ALL_TIME
            if group.period == ALL_TIME
            else request.span.period(day_of(batch.released), request.period)
        )
        if period == group.period and (group.by is None or answers.get(group.by) == group.choice):
            n, failed = n + batch.n, failed + (batch.failed or 0)
    return Item(n, failed, len(item.question.choices)) if n else None


def correct(
    table: Table,
    parts: Sequence[tuple[Received, Part, Part | None]],
    pooled: Pooled,
    results: Results,
    places: Sequence[Sequence[int]],
    request: Request,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return corrected figures, one for each target of the table, and what is said of them all.

    parts : documents with their part in the table, and the part of those of its reports that are
    known to have failed. places : positions of each target's entries among the parts' targets.
    Figures are empty, and the rest None, if a document has no instructed item.
    """
    digests = [source.document.digest for source, _, _ in parts]
    if any(digest not in results.items for digest in digests):
        return [{} for _ in places], None
    laws = [_law(source, part, request) for source, part, _ in parts]
    used = results.counted(digests)
    is_precise, has_law = all(item.within(SHOWN) for item in used), all(map(_is_known, laws))
    flag = UNKNOWN_LAW if is_precise else IMPRECISE
    figures = [_hidden(flag) for _ in places]
    if is_precise and has_law:
        scored = [
            Scored.of(
                (part if failed is None else part.without(failed)).evidence(part.targets),
                len(part.targets),
                0 if failed is None else failed.n,
                law,
                results.items[digest],
                request.level,
            )
            for (_, part, failed), law, digest in zip(parts, laws, digests, strict=True)
            if law is not None
        ]
        figures = [
            _figure(scored, pooled, spans, request.level, possible(target))
            for target, spans in zip(table.targets, places, strict=True)
        ]
    share, low, high = results.share(digests, request.level)
    missing = [item.missing for item in used]
    return figures, {
        "n": sum(item.n for item in used),
        "failed": sum(item.failed for item in used),
        "choices": used[-1].choices,
        "random": share,
        "random_low": low,
        "random_high": high,
        "shown": is_precise and has_law,
        "missing": None if None in missing else sum(n for n in missing if n is not None),
        "common": results.is_common,
        "common_p": results.p,
        "law": _told(parts[-1][0], table.questions, request) if has_law else None,
        **_tested(parts, laws),
    }


_FIGURES: Final = ("corrected", "corrected_se", "corrected_low", "corrected_high")


def _is_known(law: FloatArray | None) -> bool:
    return law is not None


def _hidden(*flags: str) -> dict[str, Any]:
    return dict.fromkeys(_FIGURES) | {"flags": list(flags)}


@dataclass(frozen=True, slots=True)
class Scored:
    """A document's reports, of which those known to have failed count by the law.

    evidence : of the others. n : number of all. uncut : score intervals of the others' figures.
    """

    evidence: Evidence
    n: int
    law: FloatArray
    item: Item
    uncut: Pairs
    z: float

    @classmethod
    def of(
        cls, evidence: Evidence, targets: int, known: int, law: FloatArray, item: Item, level: float
    ) -> "Scored":
        """Return the evidence of some reports, besides which `known` are known to have failed.

        targets : number of its targets, identifiable or not.
        """
        # Always for independent draws: who answers at random is a matter of chance even in a census.
        kind: dict[str, Any] = {"population": None, "census": False, "are_shares": False}
        uncut = (
            Figures(evidence, targets, **kind).spreads(level, ())["margins"].uncut
            if evidence.n >= _FEWEST
            else ()
        )
        return cls(evidence, evidence.n + known, law, item, uncut, normal_quantile(level))

    def observed(self, spans: Sequence[int], weight: float) -> Observed | None:
        """Return the estimates of a target, or of a ratio's two; None if they are not known."""
        evidence = self.evidence
        if evidence.n < _FEWEST or any(t not in evidence.known for t in spans):
            return None
        known = [evidence.known.index(t) for t in spans]
        means = np.array([float(evidence.exact[t] or 0) for t in spans])
        spread, random = evidence.spread()[np.ix_(known, known)], evidence.W[known] @ self.law
        values, covariance = without_noise_of(self.n - evidence.n, means, spread, random, self.n)
        if len(spans) > 1:
            return Observed(values, covariance, random, self.item, weight)
        # Not a ratio: the denominator is the constant 1.
        (ends,) = (self.uncut[t] for t in spans)
        return Observed(
            np.append(values, 1.0),
            np.pad(covariance, (0, 1)),
            np.append(random, 1.0),
            self.item,
            weight,
            None if ends is None else self._sides(float(means[0]), ends, spread, covariance),
        )

    def _sides(
        self, mean: float, ends: tuple[float, float], spread: FloatArray, covariance: FloatArray
    ) -> tuple[float, float]:
        """Return the variances that the others' score interval has on each side of its estimate."""
        others, n = self.evidence.n, self.n
        within = others * float(spread[0, 0]) / (n * (n - 1))
        between = float(covariance[0, 0]) - within
        below, above = (
            (others / n * distance / self.z) ** 2 + between
            for distance in (mean - ends[0], ends[1] - mean)
        )
        return below, above


_FEWEST: Final = 2
"""Fewest reports with a variance."""


def _figure(
    scored: Sequence[Scored],
    pooled: Pooled,
    spans: Sequence[int],
    level: float,
    limits: tuple[float, float],
) -> dict[str, Any]:
    """Return the corrected figure of a target, with empty fields if it cannot be estimated.

    limits : its least and largest possible value.
    """
    observed = [
        one.observed(spans, float(weights[spans[0]] or 0))
        for one, weights in zip(scored, pooled.weights, strict=True)
    ]
    known = [one for one in observed if one is not None]
    if len(known) < len(observed):
        return _hidden()
    found = corrected(known, normal_quantile(level))
    if found is None:
        return _hidden(UNBOUNDED)
    low, high = found.ends or (None, None)
    flags = [] if found.ends else [UNBOUNDED]
    if found.ends and (found.ends[1] < limits[0] or found.ends[0] > limits[1]):
        flags.append(IMPOSSIBLE)
    return dict(zip(_FIGURES, (found.value, found.se, low, high), strict=True)) | {"flags": flags}


def _law(source: Received, part: Part, request: Request) -> FloatArray | None:
    """Return the random law of the joint answers of a part's blocks; None if it is not known."""
    questions = [question for block in part.blocks for question in block.questions]
    law = random_law(source.document, questions, request.random_law or {})
    return None if law is None else np.array([float(chance) for chance in law])


def _told(
    source: Received, questions: Sequence[Question], request: Request
) -> dict[str, dict[str, float]] | None:
    """Return the random law of each question of a table by choice."""
    laws = {}
    for question in questions:
        law = random_law(source.document, [question], request.random_law or {})
        if law is None:
            return None
        laws[question.id] = {
            choice.id: float(chance) for choice, chance in zip(question.choices, law, strict=True)
        }
    return laws


def _tested(
    parts: Sequence[tuple[Received, Part, Part | None]], laws: Sequence[FloatArray | None]
) -> dict[str, Any]:
    """Return the test of the random law by the reports that are known to have failed.

    None if they are fewer than the documents' minimum, as for any group of reports, or too few for χ².
    """
    statistic, freedom, n, least = 0.0, 0, 0, LEAST_TESTED
    for (source, _, failed), law in zip(parts, laws, strict=True):
        least = max(least, source.document.min_reports)
        if failed is None or law is None:
            continue
        n += failed.n
        evidence = failed.evidence(failed.targets)
        off = np.array([float(evidence.exact[t] or 0) for t in evidence.known]) - evidence.W @ law
        tested = law_test(off, covariance_at(evidence, law))
        if tested is not None:
            statistic, freedom = statistic + tested[0], freedom + tested[1]
    if n < least or not freedom:
        return {"law_n": n if n >= least else 0, "law_p": None}
    return {"law_n": n, "law_p": float(special.chdtrc(freedom, statistic))}
