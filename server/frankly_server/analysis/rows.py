# SPDX-License-Identifier: Apache-2.0
"""Rows of one table: each estimate with its uncertainty, sample size, documents and flags."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from math import inf
from typing import Any, Final

import numpy as np
from frankly_analyst.plots import NUMBER
from frankly_analyst.rows import Estimate
from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.denial import denied
from frankly_design.estimate.figures import sampling_factors
from frankly_design.estimate.flags import row_flags
from frankly_design.estimate.margins import DEFAULT, normal_quantile
from frankly_design.estimate.ratios import Margin, Ratio, pairs_of, ratio
from frankly_design.estimate.scales import MEDIAN, QUANTILE
from frankly_design.numeric import rational
from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Block
from frankly_protocol.questions import MEAN

from frankly_server.analysis.independence import independence
from frankly_server.analysis.part import Part
from frankly_server.analysis.pooling import Pooled
from frankly_server.analysis.request import Request
from frankly_server.analysis.tables import Table, Target, is_share
from frankly_server.surveys.devices import is_unstated

_EMPTY: Final[dict[str, Any]] = dict.fromkeys(column.name for column in fields(Estimate))
"""A row with all declared columns, each null."""

_SHARED: Final = (
    "question",
    "by",
    "level",
    "n",
    "mechanism",
    "notion",
    "epsilon",
    "ceiling",
    "documents",
    "versions_p",
)
"""Columns that are equal in all rows of a table."""

UNKNOWN: Final = "not_identifiable"
"""Flag of a row whose figure no number of reports can estimate."""

NO_PRODUCTS: Final[dict[str, None]] = dict.fromkeys(
    ("projected", "projected_interval", "mle", "mle_interval", "mle_gap", "fit_p")
)


def add_denied(rows: Sequence[dict[str, Any]], table: Table, denial: float | None) -> None:
    """Add the columns about denial to the rows of shares, unless it is None."""
    # Quantiles follow the targets, and are no shares.
    for row, target in zip(rows, table.targets, strict=False):
        if denial is not None and is_share(table, target):
            row.update(denied(row, denial))


def without_rows() -> dict[str, Any]:
    """Return the JSON of a table that has too few reports.

    It has no rows at all: even their number would reveal something about fewer reports than the minimum.
    """
    none = dict.fromkeys(("covariance", "independence", "random_answers"))
    return {"status": "insufficient", "rows": [], **none, **NO_PRODUCTS}


def status_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return ok, or not_identifiable if no row has a figure because none can be estimated."""
    is_lost = all(row["estimate"] is None and UNKNOWN in row["flags"] for row in rows)
    return UNKNOWN if is_lost else "ok"


def table_json(
    table: Table,
    parts: Sequence[Part],
    pooled: Pooled,
    request: Request,
    digests: Sequence[str],
    by: str = "",
) -> dict[str, Any]:
    """Return rows, covariance, products and fit of a table that has enough reports.

    pooled : result of `pool` for the parts. by : label of the group. The row of a target that is not
    identifiable has no figures; it and the other rows are flagged `not_identifiable`.
    """
    shared = {
        "by": by,
        "level": request.level,
        "n": pooled.mean.n,
        "mechanism": _joined(block.mechanism_name for part in parts for block in part.blocks),
        "notion": _joined(block.notion for part in parts for block in part.blocks),
        "epsilon": _joined(_nats(block, part) for part in parts for block in part.blocks),
        "ceiling": _joined(ln_up(block.ceiling) for part in parts for block in part.blocks),
        "documents": list(digests),
        "versions_p": pooled.versions_p,
    }
    rows, places, spans_of = [], [], target_places(table)
    # All ratios are computed together, because they share the evidence for their numerators,
    # denominators and sums.
    ratios = iter(_ratios(parts, pooled, [spans for spans in spans_of if len(spans) > 1], request))
    for target, spans in zip(table.targets, spans_of, strict=True):
        is_ratio = target.over is not None
        row = (
            _ratio_row(pooled, target, spans, next(ratios), request)
            if is_ratio
            else _row(pooled, spans[0], request)
        )
        places.append(spans[0])
        own = [UNKNOWN] if row is None else _row_flags(target, row, _uncut(pooled, spans, row))
        flags = list(dict.fromkeys([*pooled.mean.flags, *own]))
        row = (row or {"method": request.method}) | {"flags": flags}
        named = {
            "question": table.id,
            "choice": target.id,
            "label": dict(target.label),
            "unit": target.unit,
        }
        rows.append(_EMPTY | named | row | shared)
    rows += _quantiles(table, rows, request)
    identifiable = [row["choice"] for row in rows if row["estimate"] is not None]
    return {
        "rows": rows,
        "covariance": _covariance(pooled, table, places),
        "independence": independence(table, parts, pooled, request),
        **_products(pooled, table, identifiable),
    }


def _quantiles(
    table: Table, rows: Sequence[Mapping[str, Any]], request: Request
) -> list[dict[str, Any]]:
    """Return the rows of a scale's quantiles, from the rows of its distribution; else []."""
    if table.scale is None:
        return []
    cuts = [row for row in rows if row["choice"] != MEAN]
    quantiles = []
    for text, level in request.quantile_levels.items():
        # Without the whole distribution there is no quantile.
        figures = table.scale.quantile(cuts, level) or {
            "method": request.method,
            "flags": [flag for flag in (UNKNOWN,) if any(flag in cut["flags"] for cut in cuts)],
        }
        name = MEDIAN if level == 0.5 else QUANTILE + text
        named = {"choice": name, "label": dict.fromkeys(table.text, name), "unit": NUMBER}
        quantiles.append(_EMPTY | {key: cuts[0][key] for key in _SHARED} | named | figures)
    return quantiles


def part_targets(table: Table) -> list[tuple[Any, ...]]:
    """Return the targets' weights over the table's cells; a ratio has two consecutive entries."""
    return [weights for target in table.targets for weights in _weights(target)]


def _weights(target: Target) -> list[tuple[Any, ...]]:
    return [target.weights] if target.over is None else [target.weights, target.over]


def target_places(table: Table) -> list[list[int]]:
    """Return, per target, the positions of its entries in `part_targets`."""
    places, place = [], 0
    for target in table.targets:
        size = len(_weights(target))
        places.append(list(range(place, place + size)))
        place += size
    return places


def _row(pooled: Pooled, t: int, request: Request) -> dict[str, Any] | None:
    """Return the row of a target, None if the target is not identifiable.

    If the interval is unknown, the row has a flag instead of ends.
    """
    mean, method, pair = pooled.mean, request.method, pooled.ends[t]
    value = mean.unbiased[t]
    if value is None:
        return None  # not identifiable; `accept_unidentifiable` allows this
    flags = [flag for flag in mean.row_flags[t] if flag == "few_informative"]
    # The fallback to a kl interval exists only for a single document.
    if pair is None and len(pooled.estimates) == 1 and method in ("exact", "sequence"):
        method, pair = "kl", mean.margins.kl[t]
        flags.append("exact_not_available")
    low, high = pair or (None, None)
    return {
        "estimate": value,
        "se": mean.se[t],
        "se_privacy": mean.se_privacy[t],
        "se_sampling": mean.se_sampling[t],
        "worst_case_se": mean.worst_case_se[t],
        "margin": None if pair is None else max(pair[1] - value, value - pair[0]),
        "low": low,
        "high": high,
        "method": method,
        "poisoning_up": mean.poisoning.up[t],
        "poisoning_down": mean.poisoning.down[t],
        "privacy_cost": mean.privacy_cost[t],
        "efficiency": mean.efficiency[t],
        "flags": [*flags, *(["interval_unknown"] if pair is None else [])],
    }


def _ratios(
    parts: Sequence[Part], pooled: Pooled, spans: Sequence[Sequence[int]], request: Request
) -> list[Ratio | None]:
    """Return ratios of pairs of targets by Fieller's method, by `_ratio_margin`.

    An entry is None if the covariance or the ratio is unknown.
    """
    if not spans or pooled.mean.covariance is None:
        return [None] * len(spans)
    pairs_by_part = []
    for part, estimate, weights in zip(parts, pooled.estimates, pooled.weights, strict=True):
        targets = [(part.targets[i], part.targets[j]) for i, j in spans]
        sums = [(a, b, tuple(x + y for x, y in zip(a, b, strict=True))) for a, b in targets]
        covariance = np.array(estimate.covariance, dtype=np.float64)
        population, census = part.frame(request.population, census=request.census)
        _, sampling = sampling_factors(estimate.n, population, census=census)
        of_pairs = [covariance[np.ix_(pair, pair)] for pair in spans]
        scales = [np.array([weights[t] or 0.0 for t in pair]) for pair in spans]
        pairs_by_part.append(
            pairs_of(part.evidence(tuple(chain(*sums))), of_pairs, scales, sampling, request.level)
        )
    _, margin = _ratio_margin(request, len(spans))
    return [
        ratio(pairs, margin) if _quotient(pooled, pair) is not None and None not in pairs else None
        for pairs, pair in zip(zip(*pairs_by_part, strict=True), spans, strict=True)
    ]


def _ratio_margin(request: Request, ratios: int) -> tuple[str, Margin]:
    """Return the method of ratios, with its margin: the requested one, else `score`.

    kl, exact and sequence would need the distribution of a − ρb for every ρ of the search.
    """
    margin = Margin.of(request.method, request.level, ratios)
    if margin is not None:
        return request.method, margin
    return DEFAULT, Margin("score", normal_quantile(request.level))


def _quotient(pooled: Pooled, spans: Sequence[int]) -> float | None:
    """Return the estimate of a/b; None if b is estimated as 0 or either is not identifiable."""
    a, b = (pooled.mean.unbiased[t] for t in spans)
    return None if a is None or not b else a / b


def _ratio_row(
    pooled: Pooled, target: Target, spans: Sequence[int], fitted: Ratio | None, request: Request
) -> dict[str, Any] | None:
    """Return the row of a ratio, None if numerator or denominator is not identifiable.

    Columns that do not apply to a ratio are left out. If the ratio is unbounded or its interval is
    unknown, the row has a flag instead of ends.
    """
    if any(pooled.mean.unbiased[t] is None for t in spans):
        return None
    value, ends = (
        (_quotient(pooled, spans), None) if fitted is None else (fitted.value, fitted.ends)
    )
    low, high = ends or (None, None)
    # A numerator or denominator with equal weights for all answers is a known constant.
    few_informative = [
        "few_informative" in pooled.mean.row_flags[t]
        for t, of in zip(spans, _weights(target), strict=True)
        if min(of) < max(of)
    ]
    flags = ["few_informative"] if any(few_informative) else []
    if ends is None:
        # If the denominator is estimated as 0, its interval contains 0, so the ratio is unbounded.
        flags.append("interval_unknown" if fitted is None and value is not None else "unbounded")
    method, _ = _ratio_margin(request, 1)
    # The flag shows that the method is not the requested one.
    if method != request.method:
        flags.append("score_instead")
    return {
        "estimate": value,
        "se": None if fitted is None else fitted.se,
        "margin": None if ends is None or value is None else max(ends[1] - value, value - ends[0]),
        "low": low,
        "high": high,
        "method": method,
        "flags": flags,
    }


def _uncut(pooled: Pooled, spans: Sequence[int], row: Mapping[str, Any]) -> Ends | None:
    """Return the interval of a row before cutting at the possible values; None if it has none."""
    if len(spans) == 1 and row["method"] == DEFAULT:
        return pooled.uncut[spans[0]]
    return None if row["low"] is None else (row["low"], row["high"])


def _row_flags(target: Target, row: Mapping[str, Any], ends: Ends | None) -> list[str]:
    value, limits = row["estimate"], possible(target)
    if limits[0] == limits[1]:  # a known constant
        return [flag for flag in row["flags"] if flag != "few_informative"]
    is_share = limits == (0.0, 1.0) and (
        target.over is not None or set(rational.distinct(target.weights)) <= {0, 1}
    )
    outside = (
        ["outside_unit_interval"] if is_share and value is not None and not 0 <= value <= 1 else []
    )
    return [
        *row["flags"],
        *outside,
        *row_flags(value, ends, limits, None, row.get("worst_case_se")),
    ]


def possible(target: Target) -> tuple[float, float]:
    """Return the smallest and largest value of a target; ±∞ for a ratio that may be unbounded."""
    if target.over is None:
        values = rational.distinct(target.weights)
        return float(min(values)), float(max(values))
    pairs = [pair for pair in zip(target.weights, target.over, strict=True) if any(pair)]
    if any(over <= 0 for _, over in pairs):
        return -inf, inf
    # A ratio of sums lies between the smallest and the largest ratio of its terms.
    quotients = [of / over for of, over in pairs]
    return float(min(quotients)), float(max(quotients))


def _covariance(
    pooled: Pooled, table: Table, places: Sequence[int]
) -> list[list[float | None]] | None:
    """Return the covariance of the rows' estimates; None if it is unknown or not defined here.

    The entries of a row without an estimate are None.
    """
    # Ratios and medians are not linear in the shares, so their covariance is not that of the
    # targets.
    if (
        pooled.mean.covariance is None
        or table.scale is not None
        or any(target.over is not None for target in table.targets)
    ):
        return None
    covariance, known = pooled.mean.covariance, pooled.mean.unbiased
    is_known = [known[place] is not None for place in places]
    values = np.array(covariance, dtype=np.float64)[np.ix_(places, places)].tolist()
    return [
        [value if s and t else None for value, t in zip(line, is_known, strict=True)]
        for line, s in zip(values, is_known, strict=True)
    ]


def _products(pooled: Pooled, table: Table, identifiable: Sequence[str]) -> dict[str, Any]:
    """Return projected and maximum-likelihood shares with intervals by choice, and the fit.

    The column `se` does not apply to them.
    """
    mean = pooled.mean
    # Projected and maximum-likelihood values are computed for shares, not for ratios.
    if any(target.over is not None for target in table.targets):
        return NO_PRODUCTS
    names = [target.id for target in table.targets]

    def by_choice(values: Sequence[Any]) -> dict[str, Any] | None:
        items = [
            (name, v)
            for name, v in zip(names, values, strict=True)
            if name in identifiable and v is not None
        ]
        return {name: list(v) if isinstance(v, tuple) else v for name, v in items} or None

    return {
        "projected": by_choice(mean.projected),
        "projected_interval": by_choice(mean.projected_interval),
        "mle": by_choice(mean.mle),
        "mle_interval": by_choice(mean.mle_interval),
        "mle_gap": mean.mle_gap,
        "fit_p": mean.fit_p,
    }


def _nats(block: Block, part: Part) -> str:
    """Return a block's level; "none" if no ratio is bounded or public answers void the promise."""
    return "none" if block.ratio is None or is_unstated(block, part) else ln_up(block.ratio)


def _joined(values: Iterable[str]) -> str:
    """Return the distinct values, oldest first, separated by commas."""
    return ", ".join(dict.fromkeys(values))
