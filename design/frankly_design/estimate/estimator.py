# SPDX-License-Identifier: Apache-2.0
"""Unbiased estimates with their uncertainty, from counts per report symbol (spec 8.3)."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from frankly_design.estimate.figures import Figures
from frankly_design.estimate.inputs import checked_population, checked_prior, checked_targets
from frankly_design.estimate.margins import METHODS, Margins, Pairs, Values, require_level
from frankly_design.estimate.poisoning import Poisoning, checked_beta
from frankly_design.kinds.decoder import Targets, shares
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.joint import Source
from frankly_design.kinds.kind import Checked, Tally
from frankly_design.kinds.registry import estimable_of


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimates of every target with their uncertainty; None where a figure is not defined.

    n : number of reports.
    unbiased : estimates that may be outside [0, 1]; they are never clipped.
    covariance : unbiased estimate of the covariance of the unbiased estimates; needs two reports.
    se : standard errors, the square roots of the covariance's diagonal.
    se_privacy, se_sampling : the two parts of se; se² is the sum of their squares, unless a part
    was raised. For a census or a finite population, se and se_privacy use at least the privacy
    variance at the projected shares: the unbiased value can be 0 or negative by chance, and a
    margin of zero would suggest certainty.
    worst_case_se : the largest standard error over all possible true shares.
    margins : margins of error at `level`.
    poisoning : the largest effect that fake reports can have had on the estimates.

    projected : targets at the projection of the unbiased shares onto the simplex.
    mle : targets at the maximum-likelihood shares on the simplex, whose log-likelihood over all
    reports is at most `mle_gap` nats below the maximum. `mle` and `projected` are biased; `se` is
    not their standard error.
    projected_interval, mle_interval : [low, high] at `level`: the score interval, shifted so that
    the unbiased estimate becomes a possible value, cut to the possible values and, if necessary,
    widened to contain the biased estimate. They contain the true value if `margins.score` does.

    design_effect : variance divided by the variance of the same number of answers without noise, at
    the projected shares; inf if the divisor is 0.
    privacy_cost : share of the respondents that a survey of the same precision without noise would
    not need, 1 − 1/design_effect.
    efficiency : the Cramér-Rao bound divided by the variance of the fixed decoder, at the projected
        shares.
    fit_p : p-value of the test that the reports can come from the mechanism; None if no test is
    possible.

    informative : number of reports whose score for a target is not the most common one; None if the
        scores of single reports are not known.
    rank : rank of the mechanism.
    identifiable : True if every target is identifiable.
    row_flags : for each target: not_identifiable; outside_unit_interval (shares only); imprecise
        (the score margin exceeds two thirds of the estimate); margin_too_wide (it exceeds the
        target's range, 100 points of a share); few_informative (fewer than 5 informative reports);
        reports_do_not_fit (the estimate is more than 5 worst-case standard errors from the
        possible values).
    flags : no_reports, one_report, not_identifiable, outside_simplex, privacy_part_negative,
        sampling_part_negative (a part estimated below 0 is reported as 0, or as the privacy
        variance used for se_privacy), ill_conditioned, design_prior_replaced, reports_do_not_fit
        (fit_p < 0.001), mle_not_converged.
    """

    n: int
    level: float
    unbiased: Values
    covariance: tuple[Values, ...] | None
    se: Values
    se_privacy: Values
    se_sampling: Values
    worst_case_se: Values
    margins: Margins
    poisoning: Poisoning
    projected: Values
    projected_interval: Pairs
    mle: Values
    mle_interval: Pairs
    mle_gap: float | None
    design_effect: Values
    privacy_cost: Values
    efficiency: Values
    fit_p: float | None
    informative: tuple[int | None, ...]
    rank: int
    identifiable: bool
    row_flags: tuple[tuple[str, ...], ...]
    flags: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object; an infinite design effect is the text "inf"."""
        # JSON has no infinity, and the JSON format has neither `level` nor `uncut`.
        body = asdict(self)
        del body["level"], body["margins"]["uncut"]
        body["design_effect"] = ["inf" if v == float("inf") else v for v in self.design_effect]
        return body


def estimate(
    mechanism: Source,
    counts: Tally,
    *,
    design_prior: Sequence[int] | None = None,
    targets: Literal["shares"] | Sequence[Sequence[Fraction | int]] = "shares",
    population: int | None = None,
    census: bool = False,
    level: float = 0.95,
    beta: Fraction = Fraction(1, 100),
    methods: Collection[str] = METHODS,
) -> Estimate:
    """Estimate W·p from noisy counts, in time at most linear in the number of distinct reports.

    mechanism : the published mechanism of the reports.
    counts : reports per symbol, in order; for a product in row-major order, or by symbol; for sets
        (unary, subset) a `SetCounts`; for a `Joint` by the tuple of its blocks' symbols, sets as
        masks.
    design_prior : counts of the answers published with the mechanism, for the decoder's weights;
        None for the uniform prior.
    targets : rows of W over answers, or "shares".
    population : N, if the respondents are drawn without replacement from N people.
    census : True if the respondents are the population, so that only privacy adds noise
        [Thesis 6.5].
    level : confidence level of the margins, in (0, 1).
    beta : assumed share of fakes among all received reports, in [0, 1), for the poisoning bound.
    methods : names of the slow margins (kl, exact, sequence) to compute; other slow margins are
    None. All other margins are always computed.

    Raises InvalidInput: field_type (beta), counts_invalid, targets_invalid, prior_shape,
    prior_value, confidence_range, and unsupported or not_identifiable for a product or `Joint` that
    cannot be decoded.
    """
    confidence = require_level(level)
    rows = shares(mechanism.answers) if targets == "shares" else checked_targets(mechanism, targets)
    evidence = checked_evidence(mechanism, counts, rows, design_prior)
    checked_population(evidence.n, population, census=census)
    fake_share = checked_beta(beta)
    # Sums of shares, such as the margins of a table, are also in [0, 1].
    are_shares = rows is shares(mechanism.answers) or all(
        all(w in (0, 1) for w in row) for row in rows
    )
    figures = Figures(evidence, len(rows), population, census=census, are_shares=are_shares)
    return Estimate(n=evidence.n, level=confidence, **figures.all(confidence, fake_share, methods))


def checked_evidence(
    mechanism: Source, counts: Tally, targets: Targets, design_prior: Sequence[int] | None
) -> Evidence:
    """Return the evidence about the targets from counts. Raises the errors of `estimate`."""
    source = estimable_of(mechanism)
    tally = source.checked(counts)
    prior = None if design_prior is None else checked_prior(mechanism, design_prior)
    return source.evidence(tally, targets, prior)


def evidence_of(
    mechanism: Source, tally: Checked, targets: Targets, prior: tuple[int, ...] | None
) -> Evidence:
    """Return the evidence about the targets from checked counts, for any kind of mechanism."""
    return estimable_of(mechanism).evidence(tally, targets, prior)


def nothing_yet(mechanism: Source, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
    """Return the evidence of zero reports, for figures of the mechanism itself (planning)."""
    source = estimable_of(mechanism)
    return source.evidence(source.nothing_yet(), targets, prior)
