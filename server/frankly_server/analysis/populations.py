# SPDX-License-Identifier: Apache-2.0
"""Populations of known group sizes: the groups' estimates weighted by their sizes (spec 8.12)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frankly_analyst.request import WEIGHTED
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.contrasts import Sample
from frankly_server.analysis.groups import Group, are_arms, groupings, groups_of_all_days
from frankly_server.analysis.pooling import weigh_groups
from frankly_server.analysis.request import Coefficients, Request
from frankly_server.analysis.rows import add_denied, status_of, table_json, without_rows
from frankly_server.analysis.tables import Table

Estimated = tuple[Group, Mapping[str, Any], Sample | None]
"""A group with its estimates as JSON, and its sample, which is None if it has too few reports."""


def require_groups(requested: Sequence[Table], request: Request) -> list[str]:
    """Return a note about the population whose group sizes are stated; [] if none are.

    Raises InvalidInput: strata_invalid for a name that is no group, unsupported for arms.
    """
    if request.sizes is None:
        return []
    if any(are_arms(table, request.group) for table in requested):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "devices draw their arms, which are no groups of a population: use compare",
            "group_sizes",
        )
    # Of all days and tables, so that a name is not unknown because a period has no reports.
    known = dict.fromkeys(
        str(group.choice) for table in requested for group in groups_of_all_days(table, request)
    )
    # Reports with such a choice are in no group.
    removed = dict.fromkeys(
        choice
        for table in requested
        for source in table.sources
        for choice in groupings(source.document).get(str(request.group), ())
        if choice not in known
    )
    unknown = [name for name in request.sizes if name not in known]
    if known and unknown:
        gone = ", ".join(name for name in unknown if name in removed)
        reason = (
            f"the newest version of {request.group} no longer has {gone}"
            if gone
            else "group_sizes names no group of these estimates"
        )
        raise InvalidInput(
            Problem.STRATA_INVALID,
            f"{reason}; the groups are {', '.join([*known][:20])}",
            "group_sizes",
        )
    named = ", ".join(
        f"{name} {100 * float(share):.6g}%" for name, share in _shares(request.sizes).items()
    )
    others = ", ".join(name for name in known if name not in request.sizes)
    return [
        f"{WEIGHTED}={request.group} is the population of these groups: {named}. "
        + (f"Not part of it: {others}. " if others else "")
        + f"Reports without an answer to {request.group}"
        + (
            f", or with one that its newest version lacks ({', '.join(removed)}),"
            if removed
            else ""
        )
        + " are in no group."
    ]


def populations(
    table: Table, estimated: Sequence[Estimated], request: Request
) -> Iterator[dict[str, Any]]:
    """Yield the estimates of the population as JSON, one for each period of a table's groups.

    Nothing without sizes in the request. A population has no estimates if a named group has too few
    reports.
    """
    if request.sizes is None:
        return
    for period in dict.fromkeys(group.period for group, _, _ in estimated):
        within = [one for one in estimated if one[0].period == period]
        yield _population(table, within, request.sizes, request)


def _population(
    table: Table, estimated: Sequence[Estimated], sizes: Coefficients, request: Request
) -> dict[str, Any]:
    (group, first, _), *_ = estimated
    members = [(g, body, sample) for g, body, sample in estimated if g.choice in sizes]
    label = {WEIGHTED: str(request.group)} | {
        name: value for name, value in (group.label or {}).items() if name != request.group
    }
    bodies = [body for _, body, _ in members]
    # A table of versions that lack a choice has no group of it, which then lacks all its reports.
    lacking = len(sizes) - len(members)
    n, least = sum(body["n"] for body in bodies), max(body["needed"] for _, body, _ in estimated)
    missing = sum(max(0, body["needed"] - body["n"]) for body in bodies) + lacking * least
    used = {digest for body in bodies for digest in body["documents"]}
    digests = [one.document.digest for one in table.sources if one.document.digest in used]
    arms = [arm for body in bodies for arm in body.get("arms", ())]
    head = {name: first[name] for name in ("id", "block", "text")} | {
        "by": label,
        "n": n,
        "received": sum(body["received"] for body in bodies),
        "needed": n + missing if missing else sum(body["needed"] for body in bodies),
        "documents": list(dict.fromkeys(digests)),
        **({"arms": list(dict.fromkeys(arms))} if arms else {}),
    }
    samples = {str(g.choice): sample for g, _, sample in members if sample is not None}
    if len(samples) < len(sizes):
        return head | without_rows()
    name = " ".join(f"{key}={value}" for key, value in label.items())
    body = _weighted(table, samples, request, head["documents"], name)
    return head | {"status": status_of(body["rows"]), "random_answers": None} | body


def _weighted(
    table: Table, samples: Mapping[str, Sample], request: Request, digests: Sequence[str], name: str
) -> dict[str, Any]:
    # Exact intervals exist only for single estimates; the Chernoff bound also holds for their sum.
    is_exact = request.method == "exact"
    request = replace(request, method="kl") if is_exact else request
    shares = _shares(request.sizes or {})
    pooled = weigh_groups(
        [(sample.parts, sample.pooled) for sample in samples.values()],
        [float(shares[choice]) for choice in samples],
        request,
    )
    parts = [part for sample in samples.values() for part in sample.parts]
    body = table_json(table, parts, pooled, request, digests, name)
    for row in body["rows"] if is_exact else ():
        if row["method"] == "kl":
            row["flags"] = [*row["flags"], "exact_not_available"]
    add_denied(body["rows"], table, request.denial)
    return body


def _shares(sizes: Coefficients) -> Coefficients:
    """Return W_g, the share of each group in the population."""
    total = sum(sizes.values())
    return {name: size / total for name, size in sizes.items()}
