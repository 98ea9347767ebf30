# SPDX-License-Identifier: Apache-2.0
"""Cases of the coverage grid: a survey, its estimates with intervals, and their truths."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from frankly_analyst.models import weights as weighting
from frankly_analyst.models.combined import median
from frankly_analyst.models.fitting import fit_rows
from frankly_analyst.models.formulas import split
from frankly_analyst.models.outcome import LINEAR, LOGISTIC, MULTINOMIAL, ORDINAL, Outcome, outcome
from frankly_analyst.models.sample import SIMPLE, STRATA, FloatArray, Sample
from frankly_analyst.models.setup import Rows, rows_of
from frankly_analyst.models.weighted import Weighted, estimate
from frankly_analyst.models.weights import Weights

from _analyst.surveys import Survey, cross, grr, oue

Ends = tuple[str, float, float, float]
"""Name of an estimate, both ends of its interval (−∞, ∞ if unbounded), and its truth."""


@dataclass(frozen=True)
class Case:
    """A survey and the estimates from its counts."""

    name: str
    kind: str
    survey: Survey
    ends: Callable[[Sample], Sequence[Ends]]
    sampling: str = SIMPLE


@dataclass
class Fitted:
    """Model with a known model matrix; its truth is the model at a very large sample of expected counts."""

    survey: Survey
    formula: str
    kind: str
    more: dict[str, Any] = field(default_factory=dict)
    success: tuple[str, ...] | None = None
    effects: str = ""
    weights: Callable[[Sample], Weights] | None = None

    def __post_init__(self) -> None:
        template = self.survey.template()
        known = [*template.covariates, *self.survey.questions[1:]]
        self.outcome: Outcome = outcome("q", self.survey.answers[0], self.kind, self.success, None)
        self.rows: Rows = rows_of(template, split(self.formula, known), {}, template.covariates)
        population = _expected(self.survey, template)
        self.truth: FloatArray = self.fit(population, weighted=False).beta

    def fit(self, sample: Sample, *, weighted: bool = True) -> Any:
        """Return the fitted model."""
        more = dict(self.more)
        if self.weights is not None and weighted:
            more["weights"] = self.weights(sample)
        return fit_rows(sample, self.rows, self.outcome, formula=self.formula, **more)

    def __call__(self, sample: Sample) -> list[Ends]:
        """Return the intervals of the coefficients, and of the average marginal effects of `effects`."""
        model = self.fit(sample)
        found = [
            (f"{row.equation} {row.term}".strip(), row.low, row.high, float(b))
            for row, b in zip(model.coefficients(), self.truth, strict=True)
        ]
        if self.effects:
            from dataclasses import replace  # noqa: PLC0415

            true = replace(model, beta=self.truth).effects(self.effects)
            last = len(self.outcome.answers) - 1
            made = model.effects(self.effects).rows
            found += [
                (f"effect {row.at}", row.low, row.high, t.estimate)
                for i, (row, t) in enumerate(zip(made, true.rows, strict=True))
                if i % (last + 1) == last
            ]
        return found


def _expected(survey: Survey, template: Sample) -> Sample:
    """Return expected counts of a population of 10⁸, whose model is the truth even if the model is wrong."""
    from dataclasses import replace  # noqa: PLC0415

    n = 1e8 * survey.chances
    versions = []
    for version, law in zip(template.versions, survey.laws, strict=True):
        counts = (survey.shares @ law) * n[:, None]
        if version.moments is None:
            versions.append(replace(version, counts=counts, n=n))
        else:
            pairs = np.einsum("hs,sij->hij", survey.shares, version.moments) * n[:, None, None]
            versions.append(replace(version, counts=counts, n=n, pairs=pairs))
    return replace(template, versions=tuple(versions))


def _logit(eta: FloatArray) -> FloatArray:
    p = 1 / (1 + np.exp(-eta))
    return np.column_stack([p, 1 - p])


def _softmax(eta: FloatArray) -> FloatArray:
    e = np.exp(eta - eta.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _even(rows: Sequence[Any]) -> FloatArray:
    return np.full(len(rows), 1 / len(rows))


def models() -> Iterator[Case]:
    """Yield models of every kind."""
    two, nine, four, six = (
        cross(g="a b"),
        cross(g="a b c", x="0 1 2"),
        cross(g="a b", h="u v"),
        cross(g="a b c", h="u v"),
    )
    yes_no = (("yes", "no"),)
    x = np.array([float(row["x"]) for row in nine])
    g = np.array(["abc".index(row["g"]) for row in nine])
    of_nine = _logit(-0.5 + 0.4 * (g == 1) + 0.7 * (g == 2) + 0.3 * x)
    for epsilon in (1.0, 2.0):
        survey = Survey(
            two,
            np.array([[0.35, 0.65], [0.55, 0.45]]),
            np.array([0.5, 0.5]),
            (grr(2, epsilon),),
            yes_no,
        )
        yield _model(f"logistic, saturated, ε {epsilon:g}", survey, "q ~ g", LOGISTIC)
    survey = Survey(nine, of_nine, _even(nine), (grr(2, 2.0),), yes_no)
    yield _model("logistic, 9 strata, effects, ε 2", survey, "q ~ g + x", LOGISTIC, effects="x")
    yield _model("logistic, fixed strata, ε 2", survey, "q ~ g + x", LOGISTIC, sampling=STRATA)
    wrong = Survey(
        nine,
        _logit(-0.6 + 0.5 * x * (g == 1) + 0.3 * (x == 2)),
        _even(nine),
        (grr(2, 2.0),),
        yes_no,
    )
    yield _model("logistic, wrong model, ε 2", wrong, "q ~ g + x", LOGISTIC)
    pooled = Survey(
        nine, of_nine, _even(nine), (grr(2, 1.5), np.array([[0.9, 0.1], [0.3, 0.7]])), yes_no
    )
    yield _model("logistic, two versions", pooled, "q ~ g + x", LOGISTIC)
    eta = np.array([[0.3, -0.2, 0.0], [0.6, 0.3, 0.0], [0.1, 0.5, 0.0], [0.4, 1.0, 0.0]])
    three = (("a", "b", "c"),)
    yield _model(
        "multinomial, ε 2",
        Survey(four, _softmax(eta), _even(four), (grr(3, 2.0),), three),
        "q ~ g + h",
        MULTINOMIAL,
    )
    sets = Survey(four, _softmax(eta), _even(four), (oue(3, 3.0),), three, unary=True)
    yield _model("multinomial, unary sets, ε 3", sets, "q ~ g + h", MULTINOMIAL)
    below = 1 / (
        1 + np.exp(-(np.array([-1.2, 0.0, 1.2]) - np.array([0.0, 0.5, 0.3, 0.8])[:, None]))
    )
    steps: FloatArray = np.diff(np.column_stack([np.zeros(4), below, np.ones(4)]), axis=1)
    scale = (("1", "2", "3", "4"),)
    yield _model(
        "ordinal, ε 2",
        Survey(four, steps, _even(four), (grr(4, 2.0),), scale),
        "q ~ g + h",
        ORDINAL,
    )
    group = Survey(
        six,
        _softmax(np.array([[0.2, -0.1, 0.0, 0.3], [0.5, 0.1, 0.0, 0.2]] * 3)),
        _even(six),
        (grr(4, 2.0),),
        scale,
    )
    yield _model(
        "logistic of a group of choices, ε 2", group, "q ~ g + h", LOGISTIC, success=("1", "2")
    )
    scores = {"scores": np.array([1.0, 2.0, 3.0, 4.0])}
    yield _model("linear, ε 1", group, "q ~ g + h", LINEAR, more=scores)
    yield _model("linear, fixed strata, ε 1", group, "q ~ h", LINEAR, more=scores, sampling=STRATA)
    yes = _logit(np.array([[-0.4, 0.4], [0.1, 0.9]]).ravel())[:, 0].reshape(2, 2)
    tau = np.array([[0.5, 0.5], [0.4, 0.6]])
    joint = np.concatenate([yes * tau, (1 - yes) * tau], axis=1)
    both: FloatArray = np.kron(grr(2, 3.0), grr(2, 3.0)).astype(np.float64)
    pairs = Survey(
        two, joint, np.array([0.5, 0.5]), (both,), (("yes", "no"), ("u", "v")), ("q", "c")
    )
    yield _model("logistic on a noisy covariate, ε 3 + 3", pairs, "q ~ g + c", LOGISTIC)
    yield _model(
        "linear on a noisy covariate, ε 3 + 3",
        pairs,
        "q ~ g + c",
        LINEAR,
        more={"scores": np.array([1.0, 0.0])},
    )


def _model(
    name: str,
    survey: Survey,
    formula: str,
    kind: str,
    *,
    more: dict[str, Any] | None = None,
    sampling: str = SIMPLE,
    **options: Any,
) -> Case:
    fields = (more or {}) | {"sampling": sampling}
    return Case(name, "model", survey, Fitted(survey, formula, kind, fields, **options), sampling)


REGION, SEX = {"a": 5.0, "b": 3.0, "c": 2.0}, {"u": 0.6, "v": 0.4}
"""Population totals; the margins are independent, so they determine the cells."""


@dataclass(frozen=True)
class Weigher:
    """Weighted estimates of a population from a sample in which some strata answer more often than others."""

    truth: FloatArray
    weights: Callable[[Sample], Weights | None]
    sampling: str = SIMPLE
    by: str | None = None

    def made(self, sample: Sample) -> Weighted:
        """Return the weighted shares."""
        targets = np.eye(self.truth.shape[-1])
        names = sample.answers[0]
        return estimate(sample, targets, names, self.weights(sample), self.sampling, by=self.by)

    def shares(self, sample: Sample) -> list[Ends]:
        """Return the intervals of the shares."""
        rows = self.made(sample).rows
        return [
            (r.name, r.low, r.high, float(t)) for r, t in zip(rows, self.truth.ravel(), strict=True)
        ]

    def ratios(self, sample: Sample) -> list[Ends]:
        """Return Fieller's intervals of two ratios of shares."""
        made, p = self.made(sample), self.truth
        names = [row.name for row in made.rows]
        found = []
        for of, over in (((0,), (1,)), ((0, 2), (0, 1, 2))):
            r = made.ratio({names[i]: 1.0 for i in of}, {names[i]: 1.0 for i in over})
            low, high = (-np.inf if r.low is None else r.low, np.inf if r.high is None else r.high)
            found.append(
                (f"{of} / {over}", low, high, float(p[list(of)].sum() / p[list(over)].sum()))
            )
        return found

    def medians(self, sample: Sample) -> list[Ends]:
        """Return the interval of the median of the scores 1, 2, …."""
        made, scores = self.made(sample), np.arange(1.0, len(self.truth) + 1)
        values = np.array([row.estimate for row in made.rows])
        m = median(scores, values, made.covariance, 0.95)
        true = float(scores[np.searchsorted(np.cumsum(self.truth), 0.5)])
        return [("median", float(m.low or 0), float(m.high or 0), true)]

    def changes(self, sample: Sample) -> list[Ends]:
        """Return the intervals of the change of each share from the first to the second group."""
        made = self.made(sample)
        size = self.truth.shape[1]
        names = [row.name for row in made.rows]
        found = []
        for t in range(size):
            c = made.contrast({names[size + t]: 1.0, names[t]: -1.0})
            found.append(
                (
                    f"change {t}",
                    float(c.low or 0),
                    float(c.high or 0),
                    float(self.truth[1, t] - self.truth[0, t]),
                )
            )
        return found


def weighted() -> Iterator[Case]:
    """Yield weighted shares, ratios, medians and changes."""
    rows = cross(r="a b c", s="u v")
    N = np.array([REGION[row["r"]] * SEX[row["s"]] for row in rows])
    answer = np.array(
        [{"a": 1.0, "b": 0.6, "c": 1.5}[row["r"]] * {"u": 1.0, "v": 0.7}[row["s"]] for row in rows]
    )
    chances = N * answer / (N @ answer)
    tilt = np.arange(6)[:, None] * np.array([0.25, 0.0, -0.1, 0.05])
    shares = _softmax(np.array([0.1, 0.4, 0.2, -0.1]) + tilt)
    four = (("1", "2", "3", "4"),)
    margins = {"r": REGION, "s": {k: 10 * v for k, v in SEX.items()}}
    cells = {(row["r"], row["s"]): float(v) for row, v in zip(rows, N, strict=True)}
    given = {(row["r"], row["s"]): float(v) for row, v in zip(rows, 1 / answer, strict=True)}
    methods: dict[str, tuple[Callable[[Sample], Weights | None], str]] = {
        "given": (lambda s: weighting.given(s, given, ("r", "s")), SIMPLE),
        "post-stratified": (lambda s: weighting.poststratify(s, ("r", "s"), cells), SIMPLE),
        "raked": (lambda s: weighting.rake(s, margins), SIMPLE),
        "calibrated": (lambda s: weighting.rake(s, margins, method="linear"), SIMPLE),
        "fixed strata": (lambda s: weighting.given(s, given, ("r", "s")), STRATA),
    }
    truth = N @ shares / N.sum()
    for mechanism, law, unary in (
        ("GRR ε 1.5", grr(4, 1.5), False),
        ("OUE ε 2", oue(4, 2.0), True),
    ):
        survey = Survey(rows, shares, chances, (law,), four, unary=unary)
        for name, (weights, sampling) in methods.items():
            weigher = Weigher(truth, weights, sampling)
            yield Case(f"{name}, {mechanism}", "weights", survey, weigher.shares, sampling)
            if name in ("raked", "fixed strata"):
                yield Case(f"{name}, {mechanism}", "ratio", survey, weigher.ratios, sampling)
                yield Case(f"{name}, {mechanism}", "median", survey, weigher.medians, sampling)
    raked = Fitted(
        Survey(
            rows,
            _logit(np.array([-0.3, 0.1, 0.2, 0.6, 0.0, 0.4])),
            chances,
            (grr(2, 2.0),),
            (("yes", "no"),),
        ),
        "q ~ r * s",
        LOGISTIC,
        weights=lambda s: weighting.rake(s, margins),
    )
    yield Case("logistic, raked, ε 2", "model", raked.survey, raked)
    yield from _changes()


def _changes() -> Iterator[Case]:
    rows = cross(wave="1 2", s="u v")
    first, second = (
        np.array([[0.4, 0.35, 0.25], [0.3, 0.3, 0.4]]),
        np.array([[0.3, 0.4, 0.3], [0.25, 0.4, 0.35]]),
    )
    shares, chances = np.concatenate([first, second]), np.array([0.3, 0.2, 0.2, 0.3])
    weight = {
        ("1", "u"): 0.5 / 0.3,
        ("1", "v"): 0.5 / 0.2,
        ("2", "u"): 0.5 / 0.2,
        ("2", "v"): 0.5 / 0.3,
    }
    truth = np.array([first.mean(axis=0), second.mean(axis=0)])
    for name, law, unary in (("GRR ε 1.5", grr(3, 1.5), False), ("OUE ε 2", oue(3, 2.0), True)):
        survey = Survey(rows, shares, chances, (law,), (("a", "b", "c"),), unary=unary)
        for sampling in (SIMPLE, STRATA):
            weigher = Weigher(
                truth, lambda s: weighting.given(s, weight, ("wave", "s")), sampling, "wave"
            )
            yield Case(f"{name}, {sampling}", "change", survey, weigher.changes, sampling)
