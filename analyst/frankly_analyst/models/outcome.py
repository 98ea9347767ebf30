# SPDX-License-Identifier: Apache-2.0
"""Outcome of a model: its kind, its answers, and the parameters of its predictors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.families import Family, multinomial, ordinal
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import FloatArray
from frankly_analyst.models.scoring import Predictor

LOGISTIC, MULTINOMIAL, ORDINAL, LINEAR = "logistic", "multinomial", "ordinal", "linear"
KINDS: Final = (LOGISTIC, MULTINOMIAL, ORDINAL, LINEAR)
INTERCEPT: Final = "Intercept"


@dataclass(frozen=True)
class Outcome:
    """Answers of the outcome in the model's order, with the families' parameters.

    answers : the reference first for `logistic` and `multinomial`; in order for `ordinal`; () for `linear`.
    groups : for each answer of the model, weights 0 and 1 over the question's choices, shape (K, choices).
    """

    kind: str
    question: str
    answers: tuple[str, ...]
    groups: FloatArray

    @property
    def family(self) -> Family:
        """Shares from predictors."""
        return ordinal if self.kind == ORDINAL else multinomial

    @property
    def predictors(self) -> int:
        """Number of linear predictors."""
        return len(self.answers) - 1

    @property
    def single(self) -> bool:
        """True if each answer of the model is one choice of the question."""
        return len(self.groups) == len(self.groups[0])

    def columns(self, names: Sequence[str]) -> list[int]:
        """Return the columns of the model matrix that are used: ordinal models have thresholds instead of 1."""
        return [i for i, name in enumerate(names) if self.kind != ORDINAL or name != INTERCEPT]

    def terms(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return (equation, term) of each parameter."""
        used = [names[i] for i in self.columns(names)]
        if self.kind == ORDINAL:
            bounds = zip(self.answers, self.answers[1:], strict=False)
            return [("", f"{low} | {high}") for low, high in bounds] + [("", n) for n in used]
        if self.kind == LOGISTIC:
            return [("", name) for name in used]
        return [(answer, name) for answer in self.answers[1:] for name in used]

    def at(self, matrix: FloatArray, names: Sequence[str]) -> list[Predictor]:
        """Return the predictors at the rows of a model matrix."""
        X = matrix[:, self.columns(names)]
        m, E = X.shape[1], self.predictors
        if self.kind == ORDINAL:
            thresholds = np.ones((len(X), 1))
            return [
                Predictor(np.hstack([thresholds, -X]), np.r_[e, E : E + m].astype(np.int64))
                for e in range(E)
            ]
        return [Predictor(X, np.arange(e * m, (e + 1) * m, dtype=np.int64)) for e in range(E)]

    def start(self, parameters: int) -> FloatArray:
        """Return parameters of equal shares."""
        beta = np.zeros(parameters)
        if self.kind == ORDINAL:
            below = np.arange(1, len(self.answers)) / len(self.answers)
            beta[: len(below)] = np.log(below / (1 - below))
        return beta


def outcome(
    question: str,
    choices: Sequence[str],
    kind: str | None,
    success: str | Sequence[str] | None,
    reference: str | None,
) -> Outcome:
    """Return the outcome of a question. Raises InvalidRequest for an unknown kind or choice."""
    chosen = kind or (LOGISTIC if len(choices) == 2 or success is not None else MULTINOMIAL)
    if chosen not in KINDS:
        raise InvalidRequest(f"must be one of {', '.join(KINDS)}", code="unsupported", field="kind")
    if success is not None and chosen != LOGISTIC:
        raise _invalid("success", "is only for logistic models")
    if reference is not None and chosen != MULTINOMIAL:
        raise _invalid("reference", "is only for multinomial models; logistic ones have `success`")
    if chosen == LOGISTIC:
        return _logistic(question, choices, success)
    eye = np.eye(len(choices))
    if chosen in (ORDINAL, LINEAR):
        return Outcome(chosen, question, tuple(choices) if chosen == ORDINAL else (), eye)
    first = choices[-1] if reference is None else reference
    _require_known((first,), choices, "reference")
    order = [choices.index(first), *(i for i, c in enumerate(choices) if c != first)]
    return Outcome(chosen, question, tuple(choices[i] for i in order), eye[order])


def _logistic(
    question: str, choices: Sequence[str], success: str | Sequence[str] | None
) -> Outcome:
    if success is None and len(choices) > 2:
        raise _invalid(
            "success", f"must name the choices that count as yes: some of {', '.join(choices)}"
        )
    named = (
        (choices[0],)
        if success is None
        else (success,)
        if isinstance(success, str)
        else tuple(success)
    )
    _require_known(named, choices, "success")
    yes = np.array([float(choice in named) for choice in choices])
    if yes.all():
        raise _invalid("success", "must leave out at least one choice")
    rest = [choice for choice in choices if choice not in named]
    other = rest[0] if len(rest) == 1 else "not " + " or ".join(named)
    return Outcome(LOGISTIC, question, (other, " or ".join(named)), np.stack([1 - yes, yes]))


def scores_of(
    choices: Sequence[str], given: Mapping[str, float] | None, known: Mapping[str, float | None]
) -> FloatArray:
    """Return the score of each choice for a linear model. Raises InvalidRequest(targets_invalid) if one has none."""
    values = dict(known) if given is None else dict(given)
    missing = [choice for choice in choices if values.get(choice) is None]
    if missing:
        raise _invalid(
            "scores",
            f"has no number for {', '.join(missing)}: give scores={{…}} with one for each choice",
        )
    return numbers([values[choice] for choice in choices], "scores")


def _require_known(named: Sequence[str], choices: Sequence[str], field: str) -> None:
    unknown = [name for name in named if name not in choices]
    if unknown or not named:
        raise _invalid(field, f"must name choices of the question: {', '.join(choices)}")


def _invalid(field: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code="targets_invalid", field=field)
