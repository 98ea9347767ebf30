# SPDX-License-Identifier: Apache-2.0
"""People who answer at random: their number, and figures corrected for them (spec 8.15)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from frankly_server.analysis.tables import Table
from frankly_server.analysis.versions import covariance_at
from frankly_server.arrays import FloatArray
from frankly_server.estimate.margins import normal_quantile
from frankly_server.estimate.validity import (
    BY_GROUP,
    LEAST_TESTED,
    SHOWN,
    Item,
    Observed,
    corrected,
    law_test,
    same_share,
)
from frankly_server.lazy import special
from frankly_server.store import day_of

IMPRECISE: Final = "too_few_attentive"
"""Flag of corrected figures that are not shown, because the share who answer at random is not known well."""
UNBOUNDED: Final = "corrected_unbounded"


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the instructed item in the reports of one group.

    items : results per document, by digest. is_common : True if they are those of all groups
    together. p : of the test that all groups fail equally often, or None.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    is_common: bool = False
    p: float | None = None

    @property
    def total(self) -> Item:
        """The results of all documents together, with the number of choices of the newest one."""
        items = list(self.items.values())
        return Item(sum(i.n for i in items), sum(i.failed for i in items), items[-1].choices)


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
    known = {
        question.id: {choice.id for choice in question.choices}
        for source in documents
        for question in source.document.questions.values()
    }
    for name, weights in request.random_law.items():
        if not weights.keys() <= known.get(name, set()):
            raise InvalidInput(
                Problem.TARGETS_INVALID,
                "the survey has no such question or choice: see its document",
                f"random.{name}",
            )


def results_of(groups: Sequence[Group], request: Request) -> list[Results]:
    """Return the results of the groups of one table, in their order.

    A group is corrected by its own results if all groups are precise enough, and by those of all
    groups otherwise. Versions have separate results, as their items may differ.
    """
    own = [
        {
            source.document.digest: item
            for source in group.sources
            if (item := _item(source, group, request))
        }
        for group in groups
    ]
    known = [items for items in own if items]
    if len(groups) < 2 or request.group == VERSION or not known:
        return [Results(items) for items in own]
    p = same_share([Results(items).total for items in known])
    if all(item.within(BY_GROUP) for items in known for item in items.values()):
        return [Results(items, p=p) for items in own]
    together: dict[str, Item] = {}
    for items in known:
        for digest, item in items.items():
            before = together.get(digest, Item(0, 0, item.choices))
            together[digest] = Item(before.n + item.n, before.failed + item.failed, item.choices)
    return [Results(together, is_common=True, p=p) for _ in groups]


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

    parts : documents with their part in the table, and the part of those reports that are known to
    have failed. places : positions of each target's entries among the parts' targets. Figures are
    empty, and the rest None, if a document has no instructed item.
    """
    sources = [source for source, _, _ in parts]
    if any(source.document.digest not in results.items for source in sources):
        return [{} for _ in places], None
    laws = [_law(source, part, request) for source, part, _ in parts]
    used = [results.items[source.document.digest] for source in sources]
    is_shown = all(item.within(SHOWN) for item in used) and all(law is not None for law in laws)
    figures = [
        _figure(parts, laws, used, pooled, spans, request) if is_shown else _hidden()
        for spans in places
    ]
    total, z = results.total, normal_quantile(request.level)
    low, high = total.ends(z)
    return figures, {
        "n": total.n,
        "failed": total.failed,
        "choices": total.choices,
        "random": total.random,
        "random_low": low,
        "random_high": high,
        "shown": is_shown,
        "missing": 0 if is_shown else total.missing,
        "common": results.is_common,
        "common_p": results.p,
        "law": _told(sources[-1], table.questions, request),
        **_tested(parts, laws),
    }


def _hidden(flag: str = IMPRECISE) -> dict[str, Any]:
    return dict.fromkeys(_FIGURES) | {"flags": [flag]}


_FIGURES: Final = ("corrected", "corrected_se", "corrected_low", "corrected_high")


def _figure(
    parts: Sequence[tuple[Received, Part, Part | None]],
    laws: Sequence[FloatArray | None],
    items: Sequence[Item],
    pooled: Pooled,
    spans: Sequence[int],
    request: Request,
) -> dict[str, Any]:
    """Return the corrected figure of a target, with empty fields if it cannot be estimated."""
    observed = []
    for (_, part, _), law, item, weights in zip(parts, laws, items, pooled.weights, strict=True):
        evidence = part.evidence(part.targets)
        if law is None or any(t not in evidence.known for t in spans) or evidence.n < 2:
            return dict.fromkeys(_FIGURES) | {"flags": []}
        known = [evidence.known.index(t) for t in spans]
        values = [float(evidence.exact[t] or 0) for t in spans]
        random = [float(evidence.W[i] @ law) for i in known]
        covariance = np.zeros((2, 2))
        # Always that of independent draws: who answers at random is a matter of chance even in a census.
        size = len(spans)
        covariance[:size, :size] = covariance_at(evidence, None)[np.ix_(known, known)]
        if size == 1:  # not a ratio: the denominator is the constant 1
            values, random = [*values, 1.0], [*random, 1.0]
        observed.append(
            Observed(
                np.array(values), covariance, np.array(random), item, float(weights[spans[0]] or 0)
            )
        )
    found = corrected(observed, normal_quantile(request.level))
    if found is None:
        return _hidden(UNBOUNDED)
    low, high = found.ends or (None, None)
    flags = [] if found.ends else [UNBOUNDED]
    return dict(zip(_FIGURES, (found.value, found.se, low, high), strict=True)) | {"flags": flags}


def _law(source: Received, part: Part, request: Request) -> FloatArray | None:
    """Return the random law of the joint answers of a part's blocks; None if there are too many."""
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
