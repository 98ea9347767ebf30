# SPDX-License-Identifier: Apache-2.0
"""The rows of one table: every number beside its uncertainty, its sample size, its documents and its flags."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import numpy as np
from frankly_protocol.audit import ln_up

from frankly_server.analysis.parts import Part, Pooled, pool
from frankly_server.analysis.request import Request
from frankly_server.analysis.tables import Table, Target
from frankly_server.estimate.contrasts import ratio
from frankly_server.estimate.margins import normal_quantile
from frankly_server.estimate.target_ends import row_flags

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
        "epsilon": _joined(_nats(block.ratio) for part in parts for block in part.blocks),
        "ceiling": _joined(ln_up(block.ceiling) for part in parts for block in part.blocks),
        "documents": list(digests),
    }
    flags = [*pooled.flags, *(["pooled"] if len(parts) > 1 else [])]
    rows, places = [], []
    for target, spans in zip(table.targets, _places(table), strict=True):
        row = _ratio(pooled, spans, request) if target.over is not None else _row(pooled, spans[0], request)
        if row is None:
            continue
        places.append(spans[0])
        row["flags"] = list(dict.fromkeys([*flags, *_row_flags(table, target, row)]))
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
    """Return a ratio by the delta method, whose only margin is the normal one."""
    top, bottom = (pooled.value[t] for t in spans)
    if top is None or bottom is None or pooled.covariance is None or bottom == 0:
        return None
    found = ratio((top, bottom), pooled.covariance[np.ix_(spans, spans)].tolist())
    half = normal_quantile(request.level) * found.se
    return {
        "estimate": found.value,
        "se": found.se,
        "se_privacy": None,
        "se_sampling": None,
        "worst_case_se": None,
        "margin": half,
        "low": found.value - half,
        "high": found.value + half,
        "method": "clt",
        "poisoning_up": None,
        "poisoning_down": None,
        "privacy_cost": None,
        "efficiency": None,
        "flags": list(found.flags),
    }


def _row_flags(table: Table, target: Target, row: Mapping[str, Any]) -> list[str]:
    value, ends = row["estimate"], (row["low"], row["high"])
    outside = ["outside_unit_interval"] if table.shares and not 0 <= value <= 1 else []
    possible = (-inf, inf) if target.over is not None else (float(min(target.weights)), float(max(target.weights)))
    return [*row["flags"], *outside, *row_flags(value, ends, possible, None)]


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


def _nats(ratio_: Any) -> str:
    return "none" if ratio_ is None else ln_up(ratio_)


def _joined(values: Iterable[str]) -> str:
    """Return what all versions share, or each different value once, oldest first."""
    return ", ".join(dict.fromkeys(values))
