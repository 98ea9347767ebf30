# SPDX-License-Identifier: Apache-2.0
"""People who answer at random: their number, and figures corrected for them (spec 8.15)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any, Final

import numpy as np
from frankly_analyst.random_answers import UNCOUNTED
from frankly_design.estimate.anchors import Anchored, same_share_by_anchors
from frankly_design.estimate.figures import Figures
from frankly_design.estimate.margins import Pairs, normal_quantile
from frankly_design.estimate.validity import (
    BY_GROUP,
    LEAST_TESTED,
    SHOWN,
    Attention,
    Item,
    Observed,
    corrected,
    law_test,
    same_share,
    with_share,
    without_noise_of,
)
from frankly_design.kinds.evidence import Evidence
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_protocol.blocks import Question
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.anchors import (
    Fit,
    Overlap,
    anchored,
    anchors_of,
    fit_of,
    has_anchors,
    overlap_of,
    with_copies,
)
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
from frankly_server.store import day_of

IMPRECISE: Final = "too_few_attentive"
"""Flag of corrected figures that are not shown, because the share who answer at random is not known well."""
UNBOUNDED: Final = "corrected_unbounded"
IMPOSSIBLE: Final = "corrected_impossible"
UNKNOWN_LAW: Final = "random_law_unknown"
"""Flag of figures whose law has too many combinations, or gives every choice of a version no weight."""


@dataclass(frozen=True, slots=True)
class Results:
    """How many people of one group answer at random, by an instructed item or by anchors.

    items : κ̂ per document, by `Received.key`; the same object for documents that share one. is_common : True
    if it is that of all groups together. p : of the test that equally many do in all groups, or None.
    """

    group: Group
    items: Mapping[str, Attention] = field(default_factory=dict)
    is_common: bool = False
    p: float | None = None

    @property
    def listed(self) -> list[Attention]:
        """The different κ̂ of the documents."""
        return _distinct(self.items.values())

    def share(self, digests: Sequence[str], level: float) -> tuple[float, float, float]:
        """Return λ̂ of these documents together, weighted by reports, with the ends of its interval.

        Items and anchors can differ, so the distances of the ends are combined, as for sums.
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

    def counted(self, digests: Sequence[str]) -> list[Attention]:
        """Return the results of some documents; those that several share once."""
        return _distinct(self.items[digest] for digest in digests)


def require_stated(documents: Sequence[Received], request: Request) -> None:
    """Raise InvalidInput if the request states a law of random answers that cannot be used."""
    if request.random_law is None:
        return
    if not any(map(_tells, documents)):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "no version of this survey has an instructed item or an anchor, so no figure is corrected: leave it out",
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


def _tells(source: Received) -> bool:
    """Return True if a document has an instructed item or anchors."""
    return source.document.instructed is not None or has_anchors(source.document)


def results_of(groups: Sequence[Group], request: Request) -> list[Results]:
    """Return the results of the groups of one table, in their order.

    A group is corrected by its own results if all groups are precise enough, or if their items
    differ; otherwise by those of all groups. Versions have separate results. Groups below their
    documents' minimum, of which nothing is shown, have no part in this.
    """
    own = [_of_group(group, request) for group in groups]
    shown = [
        result.items
        for group, result in zip(groups, own, strict=True)
        if sum(_shown(item) for item in result.listed) >= _least(group)
    ]
    if len(shown) < 2 or request.group == VERSION:
        return own
    totals = [_together(_distinct(items.values())) for items in shown]
    p = None if None in totals else _same_share([total for total in totals if total is not None])
    each = [item for items in shown for item in _distinct(items.values())]
    every = _together(each)
    if every is None or all(item.within(BY_GROUP) for item in each):
        return [replace(result, p=p) for result in own]
    return [
        Results(result.group, dict.fromkeys(result.items, every), is_common=True, p=p)
        for result in own
    ]


def attention_of(group: Group, request: Request) -> Attention | None:
    """Return κ̂ of all versions of a group together.

    None if fewer reports than the minimum tell it, or if the items of versions differ.
    """
    items = _of_group(group, request).listed
    shown = sum(_shown(item) for item in items) if items else 0
    return _together(items) if items and shown >= _least(group) else None


def _least(group: Group) -> int:
    return max(source.document.min_reports for source in group.sources)


def _of_group(group: Group, request: Request) -> Results:
    """Return κ̂ per document of a group; none if fewer reports than the minimum show its anchors.

    If the anchors of a document tell too little, as those of a version that has just begun, all
    documents of the group have the κ̂ of all of them together.
    """
    found = {
        source.key: item for source in group.sources if (item := _attention(source, group, request))
    }
    anchors = [item for item in found.values() if isinstance(item, Anchored)]
    if not anchors or len(anchors) < len(found):
        return Results(group, found)
    if sum(item.shown for item in anchors) < _least(group):
        return Results(group)
    told = [one.document for one in group.sources if has_anchors(one.document)]
    if len(told) == 1 or all(
        document.key in found and found[document.key].within(BY_GROUP) for document in told
    ):
        return Results(group, found)
    every = Anchored.together(anchors)
    return Results(group, {document.key: every for document in told})


def _distinct(items: Iterable[Attention]) -> list[Attention]:
    """Return the items without repetitions of the same object, which several documents can have."""
    return list({id(item): item for item in items}.values())


def _shown(item: Attention) -> int:
    """Return the number of reports on which κ̂ rests."""
    return item.shown if isinstance(item, Anchored) else item.n


def _together(items: Iterable[Attention]) -> Attention | None:
    """Return the results of several groups of reports together; None if their items differ."""
    listed = list(items)
    anchors = [item for item in listed if isinstance(item, Anchored)]
    asked = [item for item in listed if isinstance(item, Item)]
    if anchors and not asked:
        return Anchored.together(anchors)
    if anchors or len({item.choices for item in asked}) != 1:
        return None
    return Item(sum(i.n for i in asked), sum(i.failed for i in asked), asked[0].choices)


def _same_share(totals: Sequence[Attention]) -> float | None:
    """Return the p-value of the test that equally many people answer at random in all groups."""
    anchors = [total for total in totals if isinstance(total, Anchored)]
    asked = [total for total in totals if isinstance(total, Item)]
    if anchors and asked:
        return None
    return same_share_by_anchors(anchors) if anchors else same_share(asked)


def _attention(source: Received, group: Group, request: Request) -> Attention | None:
    """Return κ̂ in a group's reports on a document; None without an item, anchors or reports."""
    if source.document.instructed is not None:
        return _item(source, group, request)
    return anchored(source, group, request.random_law or {})


def _item(source: Received, group: Group, request: Request) -> Item | None:
    item, n, failed = source.document.instructed, 0, 0
    assert item is not None  # noqa: S101 - the caller asks for its results
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
    Figures are empty, and the rest None, if a document has neither an instructed item nor anchors, if
    some have an item and others anchors, or if the table has a question that is an anchor of a document.
    """
    digests = [source.key for source, _, _ in parts]
    is_anchor = any(
        question.anchor is not None
        for source, part, _ in parts
        for block in part.blocks
        for question in block.questions
        if question.id in {asked.id for asked in table.questions}
    )
    kinds = {type(results.items.get(digest)) for digest in digests}
    if is_anchor or len(kinds) > 1 or type(None) in kinds:
        return [{} for _ in places], None
    stated, laws = (
        request.random_law or {},
        [_law(source, part, request) for source, part, _ in parts],
    )
    used = results.counted(digests)
    is_precise, has_law = all(item.within(SHOWN) for item in used), all(map(_is_known, laws))
    overlaps = _overlaps(parts, results.group, request)
    flag = (UNKNOWN_LAW if overlaps is not None else UNCOUNTED) if is_precise else IMPRECISE
    figures = [_hidden(flag) for _ in places]
    if is_precise and has_law and overlaps is not None:
        scored = [
            Scored.of(
                (part if failed is None else part.without(failed)).evidence(part.targets),
                len(part.targets),
                0 if failed is None else failed.n,
                law,
                results.items[digest],
                request.level,
                overlap,
            )
            for (_, part, failed), law, digest, overlap in zip(
                parts, laws, digests, overlaps, strict=True
            )
            if law is not None
        ]
        figures = [
            _figure(scored, pooled, spans, request.level, possible(target))
            for target, spans in zip(table.targets, places, strict=True)
        ]
    share, low, high = results.share(digests, request.level)
    missing, asked = [item.missing for item in used], [i for i in used if isinstance(i, Item)]
    return figures, {
        "n": sum(_shown(item) for item in used),
        "failed": sum(item.failed for item in asked) if asked else None,
        "choices": asked[-1].choices if asked else None,
        "anchors": [one.question.id for one in anchors_of(parts[-1][0].document, stated)],
        "random": share,
        "random_low": low,
        "random_high": high,
        "shown": is_precise and has_law and overlaps is not None,
        "missing": None if None in missing else sum(n for n in missing if n is not None),
        "common": results.is_common,
        "common_p": results.p,
        "law": _told(parts[-1][0], table.questions, request) if has_law else None,
        **_tested(parts, laws, results, request),
    }


def _overlaps(
    parts: Sequence[tuple[Received, Part, Part | None]], group: Group, request: Request
) -> list[Overlap | None] | None:
    """Return what each part has in common with an anchor in its form; None if it is not counted."""
    stated = request.random_law or {}
    try:
        return [overlap_of(source, group, part, stated) for source, part, _ in parts]
    except LookupError:
        return None


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
    item: Attention
    uncut: Pairs
    z: float
    overlap: Overlap | None = None

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        targets: int,
        known: int,
        law: FloatArray,
        item: Attention,
        level: float,
        overlap: Overlap | None = None,
    ) -> "Scored":
        """Return the evidence of some reports, besides which `known` are known to have failed.

        targets : number of its targets, identifiable or not. overlap : with an anchor of the same form.
        """
        # Always for independent draws: who answers at random is a matter of chance even in a census.
        kind: dict[str, Any] = {"population": None, "census": False, "are_shares": False}
        uncut = (
            Figures(evidence, targets, **kind).spreads(level, ())["margins"].uncut
            if evidence.n >= _FEWEST
            else ()
        )
        z = normal_quantile(level)
        return cls(evidence, evidence.n + known, law, item, uncut, z, overlap)

    def observed(self, spans: Sequence[int], weight: float) -> Observed | None:
        """Return the estimates of a target, or of a ratio's two; None if they are not known."""
        evidence = self.evidence
        if evidence.n < _FEWEST or any(t not in evidence.known for t in spans):
            return None
        known = [evidence.known.index(t) for t in spans]
        means = np.array([float(evidence.exact[t] or 0) for t in spans])
        spread, random = evidence.spread()[np.ix_(known, known)], evidence.W[known] @ self.law
        values, covariance = without_noise_of(self.n - evidence.n, means, spread, random, self.n)
        beside = with_share(values, random, self.item)
        if self.overlap is not None:
            beside = self.overlap.beside(beside, known, self.item.n)
        if len(spans) > 1:
            return Observed(values, covariance, random, self.item, weight, beside=beside)
        # Not a ratio: the denominator is the constant 1.
        (ends,) = (self.uncut[t] for t in spans)
        return Observed(
            np.append(values, 1.0),
            np.pad(covariance, (0, 1)),
            np.append(random, 1.0),
            self.item,
            weight,
            None if ends is None else self._sides(float(means[0]), ends, spread, covariance),
            np.append(beside, 0.0),
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
    """Return the random law of each question of a table, and of the anchors, by choice."""
    laws, stated = {}, request.random_law or {}
    anchors = [one for anchor in anchors_of(source.document, stated) for one in anchor.questions]
    for question in [*questions, *(one for one in anchors if one not in questions)]:
        law = random_law(source.document, [question], with_copies(source.document, stated))
        if law is None:
            return None
        laws[question.id] = {
            choice.id: float(chance) for choice, chance in zip(question.choices, law, strict=True)
        }
    return laws


def _tested(
    parts: Sequence[tuple[Received, Part, Part | None]],
    laws: Sequence[FloatArray | None],
    results: Results,
    request: Request,
) -> dict[str, Any]:
    """Return the test of the random law: by the anchors, or by reports that are known to have failed.

    None if they are fewer than the documents' minimum, as for any group of reports, or too few for χ².
    """
    stated, tests = request.random_law or {}, []
    least = max(LEAST_TESTED, *(source.document.min_reports for source, _, _ in parts))
    for (source, _, failed), law in zip(parts, laws, strict=True):
        item = results.items[source.key]
        if isinstance(item, Anchored):
            tests.append(fit_of(source, results.group, stated, item.attentive))
        elif failed is not None and law is not None:
            tests.append(_fit_of_failures(failed, law))
    found = [test for test in tests if test is not None]
    n, freedom = sum(test.n for test in found), sum(test.freedom for test in found)
    if n < least or not freedom:
        return {"law_n": n if n >= least else 0, "law_p": None}
    statistic = sum(test.statistic for test in found)
    return {"law_n": n, "law_p": float(special.chdtrc(freedom, statistic))}


def _fit_of_failures(failed: Part, law: FloatArray) -> Fit:
    """Return how well the answers of those who are known to have failed fit the random law."""
    evidence = failed.evidence(failed.targets)
    off = np.array([float(evidence.exact[t] or 0) for t in evidence.known]) - evidence.W @ law
    tested = law_test(off, covariance_at(evidence, law))
    return Fit(failed.n, 0.0, 0) if tested is None else Fit(failed.n, *tested[:2])
