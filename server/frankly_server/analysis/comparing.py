# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the groups of a table: differences, trends and tests of equal shares (spec 8.12)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from itertools import combinations, pairwise
from math import fsum, sqrt
from typing import Any, Final

import numpy as np
from frankly_analyst.comparisons import Comparison
from frankly_analyst.plots import NUMBER, SHARE
from frankly_analyst.request import ALL, FIRST, MEAN, PREVIOUS
from frankly_design.estimate.effects import (
    chi_squared,
    cohens_h,
    common_ratio,
    equivalence,
    holm,
    ratio_ends,
    two_sided,
)
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.contrasts import Contrast, Sample, Sum, homogeneity_of_groups
from frankly_server.analysis.groups import Group, id_of, is_within_periods, scores_of_choices
from frankly_server.analysis.periods import PERIODS
from frankly_server.analysis.request import Request
from frankly_server.analysis.tables import Table, Target

MAX_ROWS: Final = 10_000
"""Largest number of comparisons of one question."""
_EMPTY: Final[dict[str, Any]] = dict.fromkeys(column.name for column in fields(Comparison))


@dataclass(frozen=True, slots=True)
class _Compared:
    """Groups that are compared with each other.

    over : the public question or period whose values distinguish the groups, or `version`. within :
    label of the other group or period that they all belong to, or "". missing : names of groups
    with too few reports.
    """

    over: str
    within: str
    samples: Sequence[Sample]
    missing: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Pairing:
    """One weighted sum of groups. weights : one per group. equal : see `Contrast.tested`."""

    by: str
    reference: str
    weights: tuple[float, ...]
    n: int
    n_reference: int | None
    equal: bool
    is_slope: bool = False


def require_margin(requested: Sequence[Table], request: Request) -> None:
    """Raise InvalidInput(field_type) for an `equivalence` that every difference of shares satisfies."""
    if request.equivalence is None or request.equivalence < 1:
        return
    for table in requested:
        # A scale has a mean beside its shares, which cannot be asked for alone.
        has_mean = table.scale is not None and any(t.unit == NUMBER for t in table.targets)
        if not has_mean and any(map(_is_bounded, table.targets)):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "the largest difference is in the unit of the figure, and 0.05 is 5 points of a share: every "
                f"share would be equivalent, such as those of {table.id}. For means request targets=scales, or "
                "one question in targets",
                "equivalence",
            )


def comparisons(
    estimated: Sequence[tuple[Table, Group, Sample | None]], request: Request
) -> list[dict[str, Any]]:
    """Return the comparisons of every table; [] unless the request compares."""
    if request.compare is None:
        return []
    within_periods = is_within_periods(request, [group for _, group, _ in estimated])
    over = (request.group if within_periods else request.period) or ""
    together: dict[tuple[str, str], list[tuple[Table, Group, Sample | None]]] = {}
    for table, group, sample in estimated:
        label = group.label or {}
        # Versions that ask different questions can have tables with the same id but other answers.
        key = str(id(table)), " ".join(f"{n}={v}" for n, v in label.items() if n != over)
        together.setdefault(key, []).append((table, group, sample))
    tables_compared = []
    for (_, within), entries in together.items():
        table = entries[0][0]
        samples = [
            replace(sample, id=id_of(group, within_periods=within_periods))
            for _, group, sample in entries
            if sample is not None
        ]
        # The result names these groups, so that readers do not mistake a group that is too small
        # for a group that does not differ.
        missing = [group.name for _, group, sample in entries if sample is None]
        scores = _scores(over, samples, scores_of_choices(table, request.group))
        compared = _Compared(over, within, samples, missing)
        tables_compared.append(_comparisons(table, compared, scores, request))
    return tables_compared


def _comparisons(
    table: Table, compared: _Compared, scores: Mapping[str, float], request: Request
) -> dict[str, Any]:
    """Return the comparisons of one table's groups, with their tests, as JSON values.

    scores : the number of each group on the axis of a trend, empty if there is no trend.
    """
    samples = compared.samples
    choices = [target.id for target in table.targets]
    # Two shares sum to 1, so one test decides both.
    tested = choices[-1:] if table.shares and len(choices) == 2 else choices
    pairings = _pairings(samples, request.compare or ALL, request.contrast)
    # Pairs grow with the square of the groups: 200 groups have 19,900 of them.
    if len(pairings) * len(choices) > MAX_ROWS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"these are more than {MAX_ROWS} comparisons: compare with one group, such as first",
            "compare",
        )
    build = _Rows(table, compared, request, choices, tested)
    rows = build.rows(pairings)
    slopes = _slopes(samples, scores, compared.over)
    return {
        "question": table.id,
        "documents": list(
            dict.fromkeys(slot.partition(" ")[0] for sample in samples for slot in sample.slots)
        ),
        "over": compared.over,
        "within": compared.within,
        "groups": [{"by": sample.name, "n": sample.n} for sample in samples],
        "left_out": list(compared.missing),
        "rows": rows,
        "family": {
            "size": len(pairings) * len(tested),
            "of": f"all tests of {table.id} (comparisons: {len(pairings)}, choices: {len(tested)})",
        },
        "homogeneity": _homogeneity(table, samples, request),
        "trend": None if not slopes else {"per": _unit(compared.over), "rows": build.rows(slopes)},
    }


def _scores(over: str, samples: Sequence[Sample], numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the number of each group on the axis of a trend, from its period or its choice.

    The result is empty if there is no trend. numbers : scores, or smallest numbers of ranges, by
    choice of the public question.
    """
    number_of = {s.id: _time(over, s.id) if over in PERIODS else numbers.get(s.id) for s in samples}
    # Groups without a number ("prefer not to say") cannot be ordered.
    ordered = {group: number for group, number in number_of.items() if number is not None}
    # A line through two points is exact, so its slope would only repeat their difference.
    return ordered if len(set(ordered.values())) > 2 else {}


def _time(period: str, label: str) -> float:
    if period == "month":
        year, month = label.split("-")
        return 12.0 * int(year) + int(month)
    if period == "week":
        year, week = label.split("-W")
        # Weeks are counted by their Mondays, because a year has 52 or 53 of them.
        return date.fromisocalendar(int(year), int(week), 1).toordinal() / 7
    return float(date.fromisoformat(label).toordinal())


def _unit(over: str) -> str:
    return over if over in PERIODS else f"unit of {over}"


def _pairings(
    samples: Sequence[Sample], compare: str, contrast: Mapping[str, float] | None
) -> list[_Pairing]:
    size, total = len(samples), sum(sample.n for sample in samples)

    def pair(i: int, j: int) -> _Pairing:
        weights = tuple(float(k == i) - float(k == j) for k in range(size))
        return _Pairing(samples[i].name, samples[j].name, weights, samples[i].n, samples[j].n, True)

    places = {sample.id: i for i, sample in enumerate(samples)}
    if contrast is not None:
        # A group with too few reports has no estimate, so the sum has none either.
        if not set(contrast) <= set(places):
            return []
        weights = tuple(float(contrast.get(sample.id, 0.0)) for sample in samples)
        name = " ".join(f"{w:+g} × {s.id}" for s, w in zip(samples, weights, strict=True) if w)
        n = sum(s.n for s, w in zip(samples, weights, strict=True) if w)
        return [_Pairing(name, "", weights, n, None, False)]
    if compare == ALL:
        return [pair(j, i) for i, j in combinations(range(size), 2)]
    if compare == PREVIOUS:
        return [pair(j, i) for i, j in pairwise(range(size))]
    if compare == MEAN:
        # The mean includes the group itself. A group can equal the mean of unequal groups, so these
        # sums are not tested under the hypothesis of equal shares.
        shares = [sample.n / total for sample in samples]
        return (
            [
                _Pairing(
                    sample.name,
                    MEAN,
                    tuple(float(k == i) - share for k, share in enumerate(shares)),
                    sample.n,
                    None,
                    False,
                )
                for i, sample in enumerate(samples)
            ]
            if size > 1
            else []
        )
    # None if the reference has too few reports: no group can then be compared with it.
    reference = 0 if compare == FIRST else places.get(compare)
    return (
        [pair(i, reference) for i in range(size) if i != reference] if reference is not None else []
    )


def _slopes(samples: Sequence[Sample], scores: Mapping[str, float], over: str) -> list[_Pairing]:
    """Return the slope of the least-squares line through the groups, weighted by their reports."""
    if not scores:
        return []
    # Groups without a number have weight 0 in the line, but keep their position in the contrast.
    sizes = [sample.n if sample.id in scores else 0 for sample in samples]
    numbers = [scores.get(sample.id, 0.0) for sample in samples]
    centre = fsum(n * x for n, x in zip(sizes, numbers, strict=True)) / sum(sizes)
    spread = fsum(n * (x - centre) ** 2 for n, x in zip(sizes, numbers, strict=True))
    weights = tuple(n * (x - centre) / spread for n, x in zip(sizes, numbers, strict=True))
    return [_Pairing(f"trend per {_unit(over)}", "", weights, sum(sizes), None, True, True)]


class _Rows:
    """Builder of the comparison rows of one table, with Holm's p-values over each family."""

    def __init__(
        self,
        table: Table,
        compared: _Compared,
        request: Request,
        choices: Sequence[str],
        tested: Sequence[str],
    ) -> None:
        self._table, self._compared, self._request = table, compared, request
        self._choices, self._tested = choices, tested

    def rows(self, pairings: Sequence[_Pairing]) -> list[dict[str, Any]]:
        """Return one row for each pairing and choice with an estimate."""
        # Sums without an estimate count too, which can only widen the simultaneous intervals.
        family = len(pairings) * len(self._tested)
        rows = [row for pairing in pairings for row in self._of_pairing(pairing, family)]
        is_tested = [row["choice"] in self._tested for row in rows]
        adjusted = iter(holm([row["p"] for row, t in zip(rows, is_tested, strict=True) if t]))
        for row, t in zip(rows, is_tested, strict=True):
            row["p_holm"] = next(adjusted) if t else None
        # The choice that is not tested has the p-values of its complement.
        last = [row for row in rows if row["choice"] in self._tested[-1:]]
        p_of_pair = {(row["by"], row["reference"]): row["p_holm"] for row in last}
        for row, t in zip(rows, is_tested, strict=True):
            if not t:
                row["p_holm"] = p_of_pair.get((row["by"], row["reference"]))
        return rows

    def _of_pairing(self, pairing: _Pairing, family: int) -> Iterator[dict[str, Any]]:
        contrast = Contrast(self._compared.samples, pairing.weights, self._request, family)
        for target in self._table.targets:
            total = contrast.of(target.id)
            if total is None:
                continue
            group_rows = [sample.rows[target.id] for sample in contrast.samples]
            flags = [flag for flag in _CARRIED if any(flag in row["flags"] for row in group_rows)]
            low, high = total.ends or (None, None)
            low_all, high_all = total.ends_all or (None, None)
            is_pair = bool(pairing.reference) and pairing.reference != MEAN
            yield {
                **_EMPTY,
                **(_effects(contrast, target.id) if is_pair and _is_share(target) else {}),
                "question": self._table.id,
                "choice": target.id,
                "label": dict(target.label),
                "by": pairing.by,
                "reference": pairing.reference,
                "within": self._compared.within,
                "unit": target.unit,
                "difference": total.value,
                "se": total.se,
                "low": low,
                "high": high,
                "low_all": low_all,
                "high_all": high_all,
                "level": self._request.level,
                "method": "kl" if self._request.method == "exact" else group_rows[0]["method"],
                "p": self._p(contrast, pairing, target.id, total.value, total.se),
                "p_equivalence": self._p_equivalence(pairing, target, total),
                "n": pairing.n,
                "n_reference": pairing.n_reference,
                "flags": [*total.flags, *flags],
            }

    def _p_equivalence(self, pairing: _Pairing, target: Target, total: Sum) -> float | None:
        margin = self._request.equivalence
        # The unit of a slope is another one. A standard error of 0 is that of equal reports.
        if margin is None or pairing.is_slope or not total.se:
            return None
        # The margin is then that of the mean beside these shares.
        if margin >= 1 and _is_bounded(target):
            return None
        return equivalence(total.value, total.se, margin)

    def _p(
        self, contrast: Contrast, pairing: _Pairing, choice: str, value: float, se: float | None
    ) -> float | None:
        spans = contrast.samples[0].spans[choice]
        if len(spans) > 1:
            # Ratios of two groups are tested without dividing by an estimate (Fieller); other sums
            # have only a standard error.
            if pairing.equal and len(contrast.samples) == 2:
                equality = _equal_ratios(contrast.samples, choice)
                return None if equality is None else equality["p"]
            return two_sided(value / se) if se else None
        # A test uses the variance under its hypothesis, so its result can differ from that of
        # the interval.
        variance = contrast.tested(choice, equal=pairing.equal)
        return None if variance is None else two_sided(value / sqrt(variance))


_CARRIED: Final = (
    "few_informative",
    "not_identifiable",
    "reports_do_not_fit",
    "interval_unknown",
    "unbounded",
    "score_instead",
)
"""Flags of a group's row that also warn about its comparisons."""


def _is_share(target: Target) -> bool:
    """Return True if the target is a share among all people or among some of them."""
    over = (1,) * len(target.weights) if target.over is None else target.over
    pairs = set(zip(target.weights, over, strict=True))
    # Each answer counts in numerator and denominator, in the denominator only, or in neither.
    return pairs <= {(0, 0), (0, 1), (1, 1)}


def _is_bounded(target: Target) -> bool:
    """Return True for a share and for a contrast of shares, but not for a ratio without a limit."""
    return target.unit == SHARE and (target.over is None or _is_share(target))


def _effects(contrast: Contrast, choice: str) -> dict[str, float | None]:
    """Return ratio and Cohen's h of two groups' shares, from their uncut or displayed intervals."""
    (first, second), (w, _) = contrast.samples, contrast.weights
    group, reference = (first, second) if w > 0 else (second, first)
    shares = [_share_and_ends(sample, choice) for sample in (group, reference)]
    if shares[0] is None or shares[1] is None:
        return {}
    (a, a_ends), (b, b_ends) = shares[0], shares[1]
    h, h_low, h_high = cohens_h(a, a_ends, b, b_ends)
    # Unbiased estimates can be 0 or less; the ratio then has no meaning and is null.
    ends = ratio_ends(a, a_ends, b, b_ends)
    low, high = ends or (None, None)
    return {
        "ratio": a / b if b > 0 and a > 0 else None,
        "ratio_low": low,
        "ratio_high": high,
        "h": h,
        "h_low": h_low,
        "h_high": h_high,
    }


def _share_and_ends(sample: Sample, choice: str) -> tuple[float, tuple[float, float]] | None:
    """Return a share with its interval by the requested method; `score` intervals are uncut."""
    row, spans = sample.rows[choice], sample.spans[choice]
    if row["low"] is None:
        return None
    # Cut ends are closer to the estimate, and MOVER would mistake the short distance for precision.
    is_score = row["method"] == "score" and len(spans) == 1
    ends = sample.pooled.uncut[spans[0]] if is_score else (row["low"], row["high"])
    return None if ends is None else (row["estimate"], ends)


def _homogeneity(
    table: Table, samples: Sequence[Sample], request: Request
) -> dict[str, Any] | None:
    """Return the test that all groups have equal true values; None with fewer than two groups."""
    if len(samples) < 2:
        return None
    # Versions can lack a choice; only choices that every group has can be compared.
    common = [t.id for t in table.targets if all(t.id in sample.rows for sample in samples)]
    flags = [
        flag
        for flag in ("few_informative", "not_identifiable")
        if any(flag in sample.rows[c]["flags"] for sample in samples for c in common)
    ]
    if any(len(samples[0].spans[choice]) > 1 for choice in common):
        return None
    targets = [samples[0].spans[choice][0] for choice in common]
    test = homogeneity_of_groups(samples, targets, request)
    figures = (None,) * 3 if test is None else (test.statistic, test.freedom, test.p)
    return dict(zip(("statistic", "df", "p"), figures, strict=True)) | {"flags": flags}


def _equal_ratios(samples: Sequence[Sample], choice: str) -> dict[str, Any] | None:
    values, covariances = [], []
    for sample in samples:
        mean, spans = sample.pooled.mean, sample.spans[choice]
        if mean.covariance is None or any(mean.unbiased[t] is None for t in spans):
            return None
        values.append(np.array([mean.unbiased[t] for t in spans], dtype=np.float64))
        covariances.append(
            np.array([[mean.covariance[i][j] for j in spans] for i in spans], dtype=np.float64)
        )
    test = common_ratio(values, covariances)
    return None if test is None else {"p": chi_squared(*test)}
