# SPDX-License-Identifier: Apache-2.0
"""The rows of one table: every number beside its uncertainty, its sample size, its documents and its flags."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import Any, Final

import numpy as np
from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Block

from frankly_server.analysis.parts import Part
from frankly_server.analysis.pooled import Pooled, pool
from frankly_server.analysis.request import Request
from frankly_server.analysis.tables import Table, Target
from frankly_server.estimate.contrasts import Ratio, ratio
from frankly_server.estimate.margins import DEFAULT, normal_quantile
from frankly_server.estimate.target_ends import row_flags
from frankly_server.surveys.devices import is_unstated

BETA: Final = "1/100"
"""The share of fakes that the poisoning columns are about; they grow as β/(1−β)."""

NO_PRODUCTS: Final[dict[str, None]] = dict.fromkeys(
    ("projected", "projected_interval", "mle", "mle_interval", "mle_gap", "fit_p")
)


def table_json(table: Table, parts: Sequence[Part], request: Request, digests: Sequence[str]) -> dict[str, Any]:
    """Return rows, covariance, products and fit of a table that has enough reports.

    Targets that cannot be told have no row; the others are flagged then.
    """
    pooled = pool(parts, request)
    shared = {
        "level": request.level,
        "n": pooled.n,
        "mechanism": _joined(block.mechanism_name for part in parts for block in part.blocks),
        "notion": _joined(block.notion for part in parts for block in part.blocks),
        "epsilon": _joined(_nats(block, part) for part in parts for block in part.blocks),
        "ceiling": _joined(ln_up(block.ceiling) for part in parts for block in part.blocks),
        "documents": list(digests),
        "versions_p": pooled.versions_p,
    }
    rows, places = [], []
    for target, spans in zip(table.targets, _places(table), strict=True):
        row = _ratio(pooled, spans, request) if target.over is not None else _row(pooled, spans[0], request)
        if row is None:
            continue
        places.append(spans[0])
        row["flags"] = list(dict.fromkeys([*pooled.flags, *_row_flags(table, target, row)]))
        rows.append(_named(table, target) | row | shared)
    told = [row["choice"] for row in rows]
    return {"rows": rows, "covariance": _covariance(pooled, table, places), **_products(pooled, table, told)}


def part_targets(table: Table) -> list[tuple[Any, ...]]:
    """Return the weights of all targets over the table's cells, a ratio giving two in a row."""
    return [weights for target in table.targets for weights in _weights(target)]


def _weights(target: Target) -> list[tuple[Any, ...]]:
    return [target.weights] if target.over is None else [target.weights, target.over]


def _places(table: Table) -> list[list[int]]:
    """Return which of `part_targets` belong to each target."""
    found, place = [], 0
    for target in table.targets:
        size = len(_weights(target))
        found.append(list(range(place, place + size)))
        place += size
    return found


def _row(pooled: Pooled, t: int, request: Request) -> dict[str, Any] | None:
    value, se = pooled.value[t], pooled.se[t]
    if value is None or se is None:
        return None  # not identifiable, as the admin accepted in writing
    method, pair, flags = request.method, pooled.ends[t], ["few_informative"] if pooled.few[t] else []
    if pair is None and pooled.single is not None and method in ("exact", "sequence"):
        method, pair = "kl", pooled.single.margins.kl[t]
        flags.append("exact_not_available")
    if pair is None:
        return None
    low, high = pair
    single = pooled.single
    return {
        "estimate": value,
        "se": se,
        "se_privacy": pooled.se_privacy[t],
        "se_sampling": pooled.se_sampling[t],
        "worst_case_se": pooled.worst_case_se[t],
        "margin": max(high - value, value - low),
        "low": low,
        "high": high,
        "method": method,
        "poisoning_up": pooled.up[t],
        "poisoning_down": pooled.down[t],
        "privacy_cost": None if single is None else single.privacy_cost[t],
        "efficiency": None if single is None else single.efficiency[t],
        "flags": flags,
    }


def _ratio(pooled: Pooled, spans: Sequence[int], request: Request) -> dict[str, Any] | None:
    """Return a ratio with an interval by Fieller's method; one that is unbounded has no ends, and a flag."""
    values = [pooled.value[t] for t in spans]
    if None in values or pooled.covariance is None or values[1] == 0:
        return None
    method = "clt" if request.method == "clt" else DEFAULT
    found = _fieller(pooled, spans, request.level, method)
    low, high = found.ends or (None, None)
    few = ["few_informative"] if any(pooled.few[t] for t in spans) else []
    return {
        "estimate": found.value,
        "se": found.se,
        "se_privacy": None,
        "se_sampling": None,
        "worst_case_se": None,
        "margin": None if found.ends is None else max(found.ends[1] - found.value, found.value - found.ends[0]),
        "low": low,
        "high": high,
        "method": method,
        "poisoning_up": None,
        "poisoning_down": None,
        "privacy_cost": None,
        "efficiency": None,
        "flags": [*few, *(["unbounded"] if found.ends is None else [])],
    }


def _fieller(pooled: Pooled, spans: Sequence[int], level: float, method: str) -> Ratio:
    """Return the ratio of two targets, from their normal ends; for `score` with the wider end of these and of its own.

    Other methods know no correlation of the two, so there is no ratio by them.
    """
    assert pooled.covariance is not None  # noqa: S101 - the caller's
    covariance = pooled.covariance[np.ix_(spans, spans)].tolist()
    top, bottom = (pooled.value[t] or 0.0 for t in spans)
    halves = [normal_quantile(level) * sqrt(max(0.0, covariance[i][i])) for i in (0, 1)]
    normal = (top - halves[0], top + halves[0]), (bottom - halves[1], bottom + halves[1])
    plain = ratio((top, bottom), covariance, normal)
    of, over = (pooled.score[t] for t in spans)
    if method == "clt" or of is None or over is None or plain.ends is None:
        return plain
    own = ratio((top, bottom), covariance, (of, over)).ends
    ends = None if own is None else (min(own[0], plain.ends[0]), max(own[1], plain.ends[1]))
    return Ratio(plain.value, plain.se, ends)


def _row_flags(table: Table, target: Target, row: Mapping[str, Any]) -> list[str]:
    value, possible = row["estimate"], _possible(target)
    is_share = table.shares or (target.over is not None and possible == (0.0, 1.0))
    outside = ["outside_unit_interval"] if is_share and not 0 <= value <= 1 else []
    ends = None if row["low"] is None else (row["low"], row["high"])
    return [*row["flags"], *outside, *row_flags(value, ends, possible, None)]


def _possible(target: Target) -> tuple[float, float]:
    """Return the least and the largest value of a target; of a part of a whole they are 0 and 1, of another ratio ∞."""
    if target.over is None:
        return float(min(target.weights)), float(max(target.weights))
    is_part = all(0 <= of <= over for of, over in zip(target.weights, target.over, strict=True))
    return (0.0, 1.0) if is_part else (-inf, inf)


def _named(table: Table, target: Target) -> dict[str, Any]:
    return {"question": table.id, "choice": target.id, "label": dict(target.label)}


def _covariance(pooled: Pooled, table: Table, places: Sequence[int]) -> list[list[float]] | None:
    """Return the covariance of the rows' estimates; None where ratios are among them or it cannot be told."""
    if pooled.covariance is None or any(target.over is not None for target in table.targets):
        return None
    found: list[list[float]] = pooled.covariance[np.ix_(places, places)].tolist()
    return found


def _products(pooled: Pooled, table: Table, told: Sequence[str]) -> dict[str, Any]:
    """Return the other two products and their intervals, by choice; `se` is not theirs. And the fit."""
    single = pooled.single
    if single is None or any(target.over is not None for target in table.targets):
        return NO_PRODUCTS
    names = [target.id for target in table.targets]

    def by_choice(values: Sequence[Any]) -> dict[str, Any] | None:
        found = {name: v for name, v in zip(names, values, strict=True) if name in told and v is not None}
        return found or None

    return {
        "projected": by_choice(single.projected),
        "projected_interval": by_choice(single.projected_interval),
        "mle": by_choice(single.mle),
        "mle_interval": by_choice(single.mle_interval),
        "mle_gap": single.mle_gap,
        "fit_p": single.fit_p,
    }


def _nats(block: Block, part: Part) -> str:
    """Return a block's level; "none" where it bounds no ratio, or public answers void the promise."""
    return "none" if block.ratio is None or is_unstated(block, part) else ln_up(block.ratio)


def _joined(values: Iterable[str]) -> str:
    """Return what all versions share, or each different value once, oldest first."""
    return ", ".join(dict.fromkeys(values))
