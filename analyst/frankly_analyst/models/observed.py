# SPDX-License-Identifier: Apache-2.0
"""Counts of a survey as the arrays that weights and models need."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from frankly_analyst.counted_part import SETS, CountedPart, Question, Stratum
from frankly_analyst.counts import Counts
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.sample import FloatArray, Sample, Version


def sample_of(counts: Counts, questions: Sequence[str], documents: Sequence[str] = ()) -> Sample:
    """Return the counts of these questions together, one version per document or arm, the first question slowest.

    documents : digests of the documents to use, or `CountedPart.key` of one of their arms; () for all.

    Raises InvalidRequest(targets_invalid) if no part contains the questions.
    """
    wanted = tuple(questions)
    parts = counts.by_document(*wanted, documents=documents)
    usable = [part for part in parts if part.strata]
    if not usable:
        raise InvalidRequest(
            f"no stratum of {', '.join(wanted)} has enough reports: request coarser strata",
            code="targets_invalid",
            field="counts",
        )
    withheld = (sum(p.withheld_strata for p in parts), sum(p.withheld_reports for p in parts))
    versions = tuple(_version(_summed(part, wanted), wanted, counts.by) for part in usable)
    return Sample(wanted, versions, withheld, sum(p.without_stratum for p in parts))


def _summed(part: CountedPart, wanted: tuple[str, ...]) -> CountedPart:
    """Return the part without the mechanisms of other questions, its counts summed over their symbols.

    Mechanisms are independent given the answers, so the sums are the counts of the remaining
    mechanisms.
    """
    if part.kind == SETS or len(part.factors) == 1 or part.marginals:
        return part
    groups = _questions_of_factors(part)
    keep = [any(question.id in wanted for question in group) for group in groups]
    if all(keep):
        return part
    shape = [len(factor.weights[0]) for factor in part.factors]
    dropped = tuple(i for i, kept in enumerate(keep) if not kept)
    strata = tuple(
        replace(s, counts=tuple(np.reshape(s.counts, shape).sum(axis=dropped).ravel().tolist()))
        for s in part.strata
    )
    return replace(
        part,
        questions=tuple(q for group, kept in zip(groups, keep, strict=True) if kept for q in group),
        factors=tuple(f for f, kept in zip(part.factors, keep, strict=True) if kept),
        strata=strata,
    )


def _questions_of_factors(part: CountedPart) -> list[list[Question]]:
    """Return the questions of each mechanism, whose joint answers are its answers."""
    groups: list[list[Question]] = []
    questions = list(part.questions)
    for factor in part.factors:
        group: list[Question] = []
        while not group or math.prod(len(q.choices) for q in group) < len(factor.decoder):
            group.append(questions.pop(0))
        groups.append(group)
    return groups


def _version(part: CountedPart, wanted: tuple[str, ...], by: tuple[str, ...]) -> Version:
    names = tuple(question.id for question in part.questions)
    strata = pd.DataFrame([{name: s.by.get(name, "") for name in by} for s in part.strata])
    if not by:
        strata = pd.DataFrame(index=range(len(part.strata)))
    answers = tuple(tuple(c.id for c in q.choices) for q in part.questions)
    n = np.array([s.n for s in part.strata], dtype=float)
    counts = np.array([s.counts for s in part.strata], dtype=float)
    decoder = _decoder(part)
    # All questions of the part: the likelihood of whole sets has more information than that of bits.
    if part.kind == SETS and len(wanted) == len(names) and _counted_whole(part):
        sets, law = _law_of_sets(part)
        whole = Version(
            part.document,
            answers,
            law,
            decoder[:, :1] + decoder[:, 1:] @ sets.T,
            _prior(part),
            strata,
            np.array([_by_set(s, sets) for s in part.strata]),
            n,
            arm=part.arm,
        )
    elif part.kind == SETS:
        law, moments = _sets(part)
        pairs = np.array([s.pairs for s in part.strata], dtype=float)
        whole = Version(
            part.document,
            answers,
            law,
            decoder[:, 1:],
            _prior(part),
            strata,
            counts,
            n,
            moments,
            pairs,
            decoder[:, 0],
            arm=part.arm,
        )
    else:
        whole = Version(
            part.document,
            answers,
            np.array(part.law),
            decoder,
            _prior(part),
            strata,
            counts,
            n,
            arm=part.arm,
        )
    if len(wanted) == len(names):
        return _ordered(whole, [names.index(name) for name in wanted])
    return _marginal(whole, part, wanted)


def _decoder(part: CountedPart) -> FloatArray:
    """Return the decoder; rows of shares that cannot be estimated are nan."""
    width = max(len(row) for row in part.decoder if row is not None)
    return np.array([[np.nan] * width if row is None else row for row in part.decoder], dtype=float)


def _prior(part: CountedPart) -> FloatArray:
    prior = np.ones(1)
    for factor in part.factors:
        counts = np.array(factor.design_prior, dtype=float)
        prior = np.kron(prior, counts / counts.sum())
    return prior


def _counted_whole(part: CountedPart) -> bool:
    return len(part.factors) == 1 and all(s.masks is not None for s in part.strata)


def _law_of_sets(part: CountedPart) -> tuple[FloatArray, FloatArray]:
    """Return every possible set as a row of bits, and its probability given the answer, shape (S, sets)."""
    (factor,) = part.factors
    inside, outside = float(factor.inside or 0), float(factor.outside or 0)
    a = len(part.decoder)
    sets = (np.arange(2**a)[:, None] >> np.arange(a) & 1).astype(float)
    if factor.name == "subset":
        size = round(outside * (a - 1) + inside)
        sets = sets[sets.sum(axis=1) == size]
        with_answer, without = math.comb(a - 1, size - 1), math.comb(a - 1, size)
        return sets, np.where(sets.T > 0, inside / with_answer, (1 - inside) / max(without, 1))
    bits = np.where(np.eye(a) > 0, inside, outside)[:, None, :]
    law = np.prod(np.where(sets > 0, bits, 1 - bits), axis=2)
    possible = law.sum(axis=0) > 0
    return sets[possible], law[:, possible]


def _by_set(stratum: Stratum, sets: FloatArray) -> FloatArray:
    """Return the number of reports with each set, in the order of the rows of `sets`."""
    numbers = dict(stratum.masks or ())
    masks = sets @ 2 ** np.arange(sets.shape[1])
    return np.array([numbers.get(round(mask), 0) for mask in masks.tolist()], dtype=float)


def _sets(part: CountedPart) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each bit, and of each pair of bits, given the answer."""
    if len(part.factors) != 1:
        raise InvalidRequest(
            "two questions whose reports are sets have no table of reports: use one of them",
            code="unsupported",
            field="questions",
        )
    (factor,) = part.factors
    inside, outside = float(factor.inside or 0), float(factor.outside or 0)
    a = len(part.decoder)
    law = np.full((a, a), outside) + np.eye(a) * (inside - outside)
    independent = law[:, :, None] * law[:, None, :]
    moments = _subset_pairs(a, inside, outside) if factor.name == "subset" else independent
    i = np.arange(a)
    moments[:, i, i] = law
    return law, moments


def _subset_pairs(a: int, inside: float, outside: float) -> FloatArray:
    """Return P(both in the set | answer) for sets of one size, drawn uniformly except for the answer itself."""
    size = outside * (a - 1) + inside
    with_truth = inside * (size - 1) / (a - 1)
    others = (inside * (size - 1) * (size - 2) + (1 - inside) * size * (size - 1)) / max(
        (a - 1) * (a - 2), 1
    )
    moments = np.full((a, a, a), others)
    s = np.arange(a)
    moments[s, s, :] = with_truth
    moments[s, :, s] = with_truth
    return moments


def _ordered(version: Version, places: list[int]) -> Version:
    """Return the version with its questions in another order."""
    if places == sorted(places):
        return version
    shape = [len(choices) for choices in version.answers]
    order = np.arange(len(version.law)).reshape(shape).transpose(places).ravel()
    return replace(
        version,
        answers=tuple(version.answers[i] for i in places),
        law=version.law[order],
        decoder=version.decoder[order],
        prior=version.prior[order],
    )


def _marginal(whole: Version, part: CountedPart, wanted: tuple[str, ...]) -> Version:
    """Return decoded scores of some questions of a mechanism that randomises several together.

    Their means are the shares of these questions whatever the others' answers are, so they serve as features
    with the law "identity"; their working second moments are those at the design prior.
    """
    rows = part.scores(*wanted)
    if any(row is None for row in rows):
        raise InvalidRequest(
            f"the mechanism does not determine the share of every answer of {', '.join(wanted)}",
            code="unsupported",
            field="questions",
        )
    scores, constant = np.array(rows, dtype=float), np.zeros(len(rows))
    if whole.moments is not None:
        constant, scores = scores[:, 0], scores[:, 1:]
    cells = np.array(part.cells(*wanted), dtype=float)
    share = whole.counts / whole.n[:, None]
    means = share @ scores.T + constant
    if whole.moments is None:
        second = np.einsum("hy,ky,ly->hkl", share, scores, scores, optimize=True)
        by_state = np.einsum("sy,ky,ly->skl", whole.law, scores, scores, optimize=True)
    else:
        second = scores @ whole.bit_covariance() @ scores.T + means[:, :, None] * means[:, None, :]
        bits = whole.law @ scores.T + constant
        spread = whole.moments - whole.law[:, :, None] * whole.law[:, None, :]
        by_state = scores @ spread @ scores.T + bits[:, :, None] * bits[:, None, :]
    # An answer without mass under the prior still needs a working moment.
    prior = cells * np.maximum(whole.prior, 1e-12)
    moments = np.einsum("ks,sij->kij", prior / prior.sum(axis=1, keepdims=True), by_state)
    n, K = whole.n, len(cells)
    by_name = dict(zip((q.id for q in part.questions), whole.answers, strict=True))
    return Version(
        whole.document,
        tuple(by_name[name] for name in wanted),
        np.eye(K),
        np.eye(K),
        cells @ whole.prior,
        whole.strata,
        means * n[:, None],
        n,
        moments,
        second * n[:, None, None],
        features=True,
        arm=whole.arm,
    )
