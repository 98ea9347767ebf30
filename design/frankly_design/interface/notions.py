# SPDX-License-Identifier: Apache-2.0
"""Privacy notions with their levels, as arguments of `design` (spec 1.4)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.interface.tables import Number, as_lists, exact, order_of, plain

Labels = tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Notion:
    """A notion with its levels; several in a list must all hold.

    X is the answer, with values x; S is the secret, with values s, whose joint distribution with
    X is the prior; Y is the report, with values y. Levels are in nats, 0.01 to 10. A float means
    its shortest decimal. Families with parameters of their own (see `design`) accept None for
    `epsilon` and `dpv`, and the design then has the levels that hold.
    """

    name: ClassVar[str]
    """Name in requests, in documents and in the specification."""

    def to_json(self) -> dict[str, Any]:
        """Return the notion as a field of a JSON request (spec 1.9)."""
        body: dict[str, Any] = {"notion": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                body[field.name] = exact(value, field.name)
        return body

    def at_places(self, secrets: Labels, answers: Labels) -> "Notion":  # noqa: ARG002
        """Return the notion with places instead of labels of the prior. Raises InvalidInput."""
        return self


@dataclass(frozen=True, slots=True)
class LDP(Notion):
    """ε-local differential privacy: Q(y|x) ≤ e^ε·Q(y|x') for all answers x, x' and reports y."""

    name = "ldp"
    epsilon: Number | None = None


@dataclass(frozen=True, slots=True)
class DP(Notion):
    """(ε, δ)-privacy of one answer: Q(T|x) ≤ e^ε·Q(T|x') + δ for all sets T  [Thesis (6.13)].

    delta : in [0, 1).
    """

    name = "dp"
    epsilon: Number
    delta: Number = 0


@dataclass(frozen=True, slots=True)
class SecretLDP(Notion):
    """ε-LDP of the secret: P(y|s) ≤ e^ε·P(y|s') for all secrets s, s'  [Funnel Def 1]."""

    name = "secret-ldp"
    epsilon: Number | None = None


@dataclass(frozen=True, slots=True)
class LIP(Notion):
    """ε-local information privacy: e^−ε ≤ P(s|y)/P(s) ≤ e^ε for all secrets s  [Funnel Def 2]."""

    name = "lip"
    epsilon: Number | None = None


@dataclass(frozen=True, slots=True)
class ALIP(Notion):
    """Asymmetric LIP: e^−ε_low ≤ P(s|y)/P(s) ≤ e^ε_high  [Lift Def 3].

    epsilon_low, epsilon_high : None or "inf" for a side without a bound.
    """

    name = "alip"
    epsilon_low: Number | None
    epsilon_high: Number | None

    def to_json(self) -> dict[str, Any]:
        """Return the notion as a field of a JSON request (spec 1.9)."""
        return {
            "notion": self.name,
            "epsilon_low": exact(self.epsilon_low, "epsilon_low"),
            "epsilon_high": exact(self.epsilon_high, "epsilon_high"),
        }


@dataclass(frozen=True, slots=True)
class PML(Notion):
    """Pointwise maximal leakage: P(s|y)/P(s) ≤ e^ε; a report may rule out secrets."""

    name = "pml"
    epsilon: Number


@dataclass(frozen=True, slots=True)
class PMC(Notion):
    """Pointwise maximal cost, the other side of LIP: P(s|y)/P(s) ≥ e^−ε."""

    name = "pmc"
    epsilon: Number


@dataclass(frozen=True, slots=True)
class SRLIP(Notion):
    """Side-channel resistant LIP: LIP of the secret given any attributes of X  [Funnel Def 3].

    attributes : number of values of each attribute; their product is the number of answers, which
    are numbered row-major.
    """

    name = "srlip"
    epsilon: Number | None
    attributes: Sequence[int]


@dataclass(frozen=True, slots=True)
class RLDP(Notion):
    """Robust LDP: ε-LDP of the secret under every distribution near the counts  [Robust Def 1].

    The distributions are a Rényi ball around the counts of a sample, which contains the true one
    with a probability near 1 − β if n is large. Answers of the mechanism are pairs (s, u).

    n : number of people in the sample. beta : in (0, 1). order : Rényi order, above 1. polyhedra :
    "simplex", or "box" for boxes of lower and upper bounds, which are tighter. diagonal : True if a
    secret is also compared with itself (Definition 3 of the paper).
    """

    name = "rldp"
    epsilon: Number | None
    n: int
    beta: Number = "0.05"
    order: Number = 2
    polyhedra: str = "simplex"
    diagonal: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the notion as a field of a JSON request (spec 1.9)."""
        ball = {name: exact(getattr(self, name), name) for name in ("n", "beta", "order")}
        body: dict[str, Any] = {"notion": self.name}
        if self.epsilon is not None:
            body["epsilon"] = exact(self.epsilon, "epsilon")
        body["robust"] = ball | {"polyhedra": self.polyhedra}
        return body | ({} if self.diagonal is False else {"diagonal": self.diagonal})


@dataclass(frozen=True, slots=True)
class DPV(Notion):
    """Degree of privacy violation: P(S = sensitive | y) ≤ dpv for all reports y  [Thesis (6.24)].

    dpv : a probability above P(S = sensitive). sensitive : the secret: its label in a prior with
    labels, or its row.
    """

    name = "dpv"
    dpv: Number | None = None
    sensitive: Any = 1

    def at_places(self, secrets: Labels, answers: Labels) -> Notion:  # noqa: ARG002
        """Return the notion with the row of its secret. Raises InvalidInput for another label."""
        names = list(map(repr, secrets or ()))
        if repr(self.sensitive) in names:
            return replace(self, sensitive=names.index(repr(self.sensitive)))
        if names and isinstance(self.sensitive, str):
            raise InvalidInput(
                Problem.FIELD_TYPE, f"the secrets are {', '.join(names[:24])}", "sensitive"
            )
        return self


@dataclass(frozen=True, slots=True)
class MetricLDP(Notion):
    """Metric LDP: Q(y|x) ≤ e^epsilons[x][z]·Q(y|z) for every pair of answers with a level.

    epsilons : shape (answers, answers), in nats; None, nan or "inf" for a pair without a level. On
    the diagonal also 0, as in a matrix of distances.
    """

    name = "metric-ldp"
    epsilons: Any

    def to_json(self) -> dict[str, Any]:
        """Return the notion as a field of a JSON request (spec 1.9)."""
        rows = as_lists(self.epsilons)
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise InvalidInput(Problem.FIELD_TYPE, "give rows of levels", "epsilons")
        known = [
            [None if e != e or (x == z and e == 0) else e for z, e in enumerate(row)]
            for x, row in enumerate(rows)
        ]
        return {"notion": self.name, "epsilons": exact(known, "epsilons")}

    def at_places(self, secrets: Labels, answers: Labels) -> Notion:  # noqa: ARG002
        """Return the notion with the levels of a table with labels in the order of the answers."""
        if answers is None or not hasattr(self.epsilons, "columns"):
            return self
        rows, columns = (
            order_of(tuple(map(plain, index)), answers, "epsilons")
            for index in (self.epsilons.index, self.epsilons.columns)
        )
        return replace(self, epsilons=self.epsilons.to_numpy()[rows][:, columns])
