# SPDX-License-Identifier: Apache-2.0
"""A designed mechanism that prints, plots and explains itself, samples, measures and estimates."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from frankly_protocol.audit import Claim, ln_up, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_design import engine
from frankly_design.engine import DesignRequest
from frankly_design.interface import shown
from frankly_design.interface.estimates import EstimateOptions, Estimates, estimate_shares
from frankly_design.interface.measured import MeasureOptions, Measures, measure
from frankly_design.interface.promised import sentences
from frankly_design.interface.tables import Table, aligned, answer_labels, plain
from frankly_design.kinds.registry import kind_of
from frankly_design.numeric.arrays import FloatArray
from frankly_design.requests.claims import RequestedClaims
from frankly_design.requests.design import design_body, warnings_of
from frankly_design.tables.limits import Limits


class Design:
    """Verified mechanism of a prior and notions, with figures from its integer weights.

    `design` returns it. Figures are those of the mechanism after rounding to whole numbers, at the
    prior; levels are rounded up. A notebook shows it as a table with colours.

    Attributes
    ----------
    mechanism : the mechanism in whole numbers, which the exact verifier accepted; it draws reports
        and is what a survey document publishes.
    answers, secrets : labels of the answers (rows of the channel) and of the secrets, in order;
        numbers from 0 if the prior has no labels. Mechanisms over pairs have answers (secret, answer).
    claims : the verified promises, with levels (p, q) of e^ε ≥ p/q.
    """

    def __init__(
        self,
        designed: engine.DesignResult,
        promised: RequestedClaims,
        request: DesignRequest,
        given: Table,
        targets: Sequence[Any] | None = None,
    ) -> None:
        """Wrap a result of the engine; `design` calls this."""
        self._designed, self._promised, self._request = designed, promised, request
        self.mechanism: Mechanism = designed.mechanism
        self.claims: tuple[Claim, ...] = designed.claims
        self.answers, self.secrets = _labels(given, request.prior.answers)
        self._given, self._targets = given, targets

    # -- the channel -------------------------------------------------------------------------------

    @cached_property
    def channel(self) -> FloatArray:
        """The conditional probabilities Q(y|x), shape (answers, reports): row = truth.

        Raises InvalidInput(unsupported) if a mechanism that reports sets has more than 4,096 reports.
        """
        rows = kind_of(self.mechanism).rows
        if rows is None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"{self.reports} reports are too many for a table: use sample and estimate",
                "mechanism",
            )
        return np.array([[w / sum(row) for w in row] for row in rows])

    @property
    def reports(self) -> int:
        """Number of possible reports."""
        return self.mechanism.reports

    # -- figures -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the mechanism, as in the request."""
        return self._designed.mechanism_name

    @property
    def information(self) -> float:
        """I(X;Y) in nats; nan if there are too many reports to list."""
        return self._designed.information

    @property
    def normalised_information(self) -> float:
        """I(X;Y) / H(X), from 0 to 1  [Lift (13)]."""
        return self._designed.normalised_information

    @property
    def variance(self) -> float:
        """Total variance of the unbiased shares from one report; inf if some cannot be estimated."""
        return self._designed.variance

    @property
    def target_variances(self) -> FloatArray:
        """Variance of each target (by default each share) from one report, shape (targets,)."""
        return np.array(self._designed.target_variances)

    @property
    def hamming(self) -> float:
        """Probability that the best guess of the answer from its report is wrong."""
        return self._designed.hamming

    @property
    def answer_ldp(self) -> float:
        """ε of the answer's LDP in nats, rounded up: bounds the leakage under any prior; may be inf."""
        return float(ln_up(self._designed.ceiling, 9))

    @property
    def value(self) -> float:
        """Value of the objective."""
        return self._designed.value

    @property
    def bound(self) -> float | None:
        """Proven bound of the objective over all mechanisms of these notions; None if none is known.

        Families have none unless they send answers unchanged, nor have designs under DP with δ > 0.
        """
        return self._designed.bound

    @property
    def gap(self) -> float | None:
        """Distance between value and bound; None without a bound."""
        return self._designed.gap

    @property
    def objective(self) -> str:
        """The objective: variance, information or hamming."""
        return self._designed.objective

    @property
    def certified(self) -> bool:
        """True if the value is within the limit `gap` (by default 1e-6) of the bound."""
        return self._designed.certified

    @property
    def identifiable(self) -> bool:
        """True if every share can be estimated."""
        return self._designed.identifiable

    @property
    def estimable(self) -> tuple[str, ...]:
        """The combinations of shares that can be estimated, as text with the answers' labels."""
        return tuple(
            re.sub(r"answer (\d+)", lambda found: f"answer {self.answers[int(found[1])]!r}", text)
            for text in self._designed.estimable
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of a family, and numbers of answers and reports."""
        return dict(self._designed.parameters)

    # -- what it is for ----------------------------------------------------------------------------

    def verify(self) -> None:
        """Check every claim again in whole numbers. Raises DocumentRejected if one does not hold."""
        for claim in self.claims:
            require_private(self.mechanism, claim)

    def measure(self, **options: Unpack[MeasureOptions]) -> Measures:
        """Return leakage by every notion, lift and utility at the prior; options as in `measure`."""
        if not isinstance(options.get("targets", ""), str):
            options["targets"] = self._aligned(options["targets"]).rows
        return measure(self.mechanism, self._request.prior, **options)

    def sample(self, answers: Iterable[Any]) -> list[int]:
        """Draw a report for each answer, exactly from Q with the system's secure random numbers.

        answers : labels as in `answers`. Reports are numbers of columns; for mechanisms that report
        sets, the set as a mask (bit x for answer x).

        Raises InvalidInput(field_type) for an answer that is not one of `answers`; the message does
        not repeat it.
        """
        if isinstance(answers, str):
            answers = [answers]
        places = {label: x for x, label in enumerate(self.answers)}
        try:
            truths = [places[plain(answer)] for answer in answers]
        except (KeyError, TypeError):
            raise InvalidInput(
                Problem.FIELD_TYPE, f"the answers are {shown.listed(self.answers)}", "answers"
            ) from None
        draw: Any = self.mechanism.sample
        return [draw(truth) for truth in truths]

    def count(self, reports: Iterable[int]) -> Any:
        """Return the counts of reports, as `estimate` needs them.

        A list, one count per report; `SetCounts` for mechanisms that report sets; for products, counts
        by report.

        Raises InvalidInput(counts_invalid) for a report that this mechanism cannot send.
        """
        return kind_of(self.mechanism).count(reports)

    def estimate(
        self,
        reports: Iterable[int] | None = None,
        *,
        counts: Any = None,
        **options: Unpack[EstimateOptions],
    ) -> Estimates:
        """Estimate the shares of the answers from reports, without bias.

        reports : as `sample` returns them. counts : instead of them, one number per report. options :
        see `estimate_shares`; the decoder is that of this design's prior.

        Raises InvalidInput, naming the field.
        """
        if (reports is None) == (counts is None):
            raise InvalidInput(Problem.FIELD_MISSING, "give either reports or counts", "reports")
        if reports is not None:
            counts = self.count(reports)
        options.setdefault("design_prior", self._designed.decoder_prior)
        names, targets = self._targets, options.get("targets", self._request.targets)
        if targets is None or isinstance(targets, str):
            options.setdefault("labels", self.answers)
            return estimate_shares(self.mechanism, counts, **options)
        if "targets" in options:
            read = self._aligned(targets)
            targets, names = read.rows, read.row_labels
        options["targets"] = [list(row) for row in targets]
        found = estimate_shares(self.mechanism, counts, **options)
        return Estimates(found.figures, names or found.labels)

    # -- what people see ---------------------------------------------------------------------------

    def explain(self) -> str:
        """Return in sentences what holds: every promise, its ceiling, its worth, and warnings."""
        lines = sentences(self.claims, self.secrets, self._promised.joints)
        notes = [f"Note: {warning}." for warning in warnings_of(self._designed)]
        return "\n".join([*lines, *shown.worth(self), *notes])

    @property
    def is_capped(self) -> bool:
        """True if the bound is over mechanisms with at most the requested variance."""
        return self._request.variance_cap is not None

    @property
    def goal(self) -> str:
        """What the value is, in words: the objective with its targets, criterion or truths."""
        if self.objective != "variance":
            return {"hamming": "error of the best guess"}.get(self.objective, self.objective)
        what = "share" if self._request.targets is None else "target"
        if self._request.criterion == "worst":
            return f"largest variance of a {what}"
        if self._request.truths is not None:
            return f"largest total variance of the {what}s over the truths"
        return f"total variance of the {what}s"

    def aligned_prior(self, prior: Any) -> Any:
        """Return a table of counts with its columns in the order of this design's answers."""
        return aligned(prior, self._given.column_labels, "prior.joint").rows

    def _aligned(self, targets: Any) -> Table:
        return aligned(targets, answer_labels(self._given, len(self.answers)), "targets")

    def to_json(self) -> dict[str, Any]:
        """Return the response of `frankly design --json` (spec 1.9); `verify` accepts its table."""
        return design_body(self._designed, self._promised, self._request)

    def to_frame(self) -> Any:
        """Return the channel as a pandas DataFrame: rows are answers, columns are reports."""
        made = shown.frame(self.channel, self._columns(), self.answers)
        made.index.name = "answer"
        return made

    def plot(self, ax: Any = None) -> Any:
        """Draw the channel as a map of colours; returns the matplotlib axes."""
        return shown.heat_map(self, ax)

    def _columns(self) -> list[str]:
        return kind_of(self.mechanism).names(self.answers)

    def __getstate__(self) -> dict[str, Any]:
        # Limits hold functions, such as a clock, which another process cannot have.
        return self.__dict__ | {"_request": replace(self._request, limits=Limits())}

    def __repr__(self) -> str:
        return shown.text(self)

    def _repr_html_(self) -> str:
        return shown.html(self)


def _labels(given: Table, answers: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return (labels of answers, labels of secrets); answers of mechanisms over pairs are pairs."""
    columns = given.column_labels or tuple(range(len(given.rows[0])))
    if len(set(columns)) < len(columns):
        raise InvalidInput(Problem.PRIOR_SHAPE, "two columns have the same label", "prior.joint")
    # With one row the answer itself is the secret.
    rows = given.row_labels or tuple(range(len(given.rows)))
    secrets = rows if len(given.rows) > 1 else columns
    if answers == len(columns):
        return columns, secrets
    return tuple((s, u) for s in secrets for u in columns), secrets
