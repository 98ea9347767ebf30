# SPDX-License-Identifier: Apache-2.0
"""Unbiased estimates with their uncertainty, from counts per report symbol (DESIGN §6)."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from frankly_server.estimate.decoder import Targets, decoder, factor_decoders, shares
from frankly_server.estimate.evidence import Evidence, TableEvidence
from frankly_server.estimate.figures import Figures
from frankly_server.estimate.inputs import (
    Checked,
    Tally,
    checked_counts,
    checked_population,
    checked_prior,
    checked_targets,
)
from frankly_server.estimate.joint import Joint, JointEvidence, Source
from frankly_server.estimate.margins import METHODS, Margins, Pairs, Values, require_level
from frankly_server.estimate.poisoning import Poisoning, checked_beta
from frankly_server.estimate.products import ProductEvidence
from frankly_server.estimate.sets import SetCounts, SetEvidence


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimates of every target and how far to trust them; None wherever a figure does not exist.

    n : reports. unbiased : may leave [0, 1], never clipped. covariance : of the unbiased estimates, itself unbiased;
    needs two reports. se : its root diagonal; se_privacy, se_sampling : the two parts it is made of (se² is their
    sum). For a census or a finite population the privacy part of these three is at least its value at the projected
    shares: the unbiased one can fall to 0 or below by chance, and a zero margin would pass noise off as certainty.
    worst_case_se : over all possible true shares. margins : at `level`. poisoning : how far fake reports
    can have moved the estimates.

    projected : targets of the nearest shares on the simplex. mle : of the likeliest shares on the simplex, at most
    `mle_gap` nats of log-likelihood, over all reports, from the best. Both are biased, and neither's spread is `se`.
    projected_interval, mle_interval : [low, high] at `level`: `margins.score` moved with its estimate to the nearest
    possible value, cut to what is possible and widened where need be to the value. They hold the true value wherever
    that margin does.

    design_effect : the variance over that of as many answers given openly, at the projected shares; inf where those
    would not vary. privacy_cost : the share of respondents whose loss would cost as much, 1 − 1/design_effect.
    efficiency : of the fixed decoder against the Cramér-Rao bound, at the projected shares. fit_p : of a test whether
    such reports can come from the mechanism at all; None where nothing can be tested.

    informative : reports whose score for a target is not the commonest one; None where single reports are not known.
    rank : of the mechanism; identifiable : whether every target is. row_flags, per target : not_identifiable,
    outside_unit_interval (shares only); and of the `score` margin, imprecise (above two thirds of the estimate),
    margin_too_wide (beyond the target's whole range, ±100 points of a share), few_informative (fewer than 5 informative
    reports), reports_do_not_fit (the estimate is 5 worst-case standard errors beyond what is possible).
    flags : no_reports, one_report, not_identifiable, outside_simplex, privacy_part_negative, sampling_part_negative (a
    part estimated below 0 is shown as 0, or as said above), ill_conditioned, design_prior_replaced,
    reports_do_not_fit (fit_p < 0.001), mle_not_converged.
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
        """Return the figures by their names in DESIGN §7; an infinite design effect is the text "inf"."""
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
    """Estimate W·p from noisy counts; the work does not depend on the number of reports.

    Parameters
    ----------
    mechanism : whose reports were counted, as published. counts : reports per symbol, in order; for a product in
    row-major order, or by symbol; for sets (unary, subset) a `SetCounts`; for a `Joint` by symbols of its blocks
    together, sets as masks. design_prior : counts of the
    answers published with the mechanism, for the decoder's weights (None: uniform). targets : rows of W over answers,
    or "shares". population : N, if the respondents are drawn without replacement from N people. census : the
    respondents are the whole population, so only privacy adds noise [Thesis 6.5]. level : of the margins, in (0, 1).
    beta : share of all received reports that are fake, in [0, 1), for the poisoning bound. methods : margins that take
    time (kl, exact, sequence) are None where they are not among these.

    Raises
    ------
    InvalidInput : field_type (beta), counts_invalid, targets_invalid, prior_shape, prior_value, confidence_range.
    """
    confidence = require_level(level)
    wanted = shares(mechanism.answers) if targets == "shares" else checked_targets(mechanism, targets)
    found = checked_evidence(mechanism, counts, wanted, design_prior)
    checked_population(found.n, population, census=census)
    share = checked_beta(beta)
    are_shares = wanted is shares(mechanism.answers) or all(all(w in (0, 1) for w in row) for row in wanted)
    figures = Figures(found, len(wanted), population, census=census, are_shares=are_shares)
    return Estimate(n=found.n, level=confidence, **figures.all(confidence, share, methods))


def checked_evidence(
    mechanism: Source, counts: Tally, targets: Targets, design_prior: Sequence[int] | None
) -> Evidence:
    """Return what counts say about the targets; raises as `estimate` does."""
    tally = checked_counts(mechanism, counts)
    prior = None if design_prior is None else checked_prior(mechanism, design_prior)
    return evidence_of(mechanism, tally, targets, prior)


def evidence_of(mechanism: Source, tally: Checked, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
    """Return what checked counts say about the targets, by the mechanism's kind."""
    if isinstance(mechanism, Joint):
        assert isinstance(tally, dict)  # noqa: S101 - checked_counts
        return JointEvidence(mechanism, targets, tally, prior)
    if isinstance(mechanism, DenseMechanism | ProductMechanism):
        assert isinstance(tally, list)  # noqa: S101 - checked_counts
        if isinstance(mechanism, ProductMechanism) and targets is shares(mechanism.answers):
            parts = factor_decoders(mechanism, prior)
            if parts is not None:
                return ProductEvidence(mechanism, parts, tally)
        return TableEvidence(decoder(mechanism, targets, prior), tally)
    assert isinstance(tally, SetCounts)  # noqa: S101 - checked_counts
    return SetEvidence(mechanism, targets, tally)


def nothing_yet(mechanism: Source, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
    """Return the evidence of no reports: for what is known before anything is collected."""
    if isinstance(mechanism, Joint):
        return evidence_of(mechanism, {}, targets, prior)
    if isinstance(mechanism, DenseMechanism | ProductMechanism):
        return evidence_of(mechanism, [0] * mechanism.reports, targets, prior)
    return evidence_of(mechanism, SetCounts(0, ((0,) * mechanism.answers,) * mechanism.answers), targets, prior)
