# SPDX-License-Identifier: Apache-2.0
"""Leakage of a mechanism by every notion, lifts, information and variance (spec 1.8)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.problems import Problem

from frankly_design.engine.measured import measures
from frankly_design.interface import shown
from frankly_design.interface.tables import (
    Number,
    aligned,
    answer_labels,
    exact,
    prior_table,
    table,
)
from frankly_design.notions.prior import Prior
from frankly_design.requests.measure import MeasureRequest, measured

SAID: Final = {
    "lip": "ε of LIP, nats  [Funnel Def 2]",
    "alip_low": "lower side of ALIP, nats  [Lift Def 3]",
    "alip_high": "upper side of ALIP, nats; pointwise maximal leakage",
    "secret_ldp": "ε of LDP of the secret, nats  [Funnel Def 1]",
    "answer_ldp": "ε of LDP of the answer, nats",
    "ceiling": "e^ε of the answer's LDP",
    "srlip": "ε of SRLIP, nats  [Funnel Def 3]",
    "dpv": "largest P(S = sensitive | y)  [Thesis (6.24)]",
    "realised_epsilon": "ε* of the secret's LDP over pairs (s, u), nats  [Robust §8.3]",
    "information_secret": "I(S;Y), nats",
    "information": "I(X;Y), nats",
    "normalised_information": "I(X;Y) / H(X)",
    "hamming": "error of the best guess of the answer",
    "variance": "total variance of the unbiased shares, one report",
    "l1_lift": "largest ℓ1-lift of a report",
    "l1_lift_inverse": "largest ℓ1-lift-inverse of a report",
    "chi2_lift": "largest χ²-lift of a report",
    "chi2_lift_inverse": "largest χ²-lift-inverse of a report",
    "total_variation": "total variation of S and Y",
    "chi2": "χ² information of S and Y",
    "rank": "rank of Q",
}
"""Figures that are single numbers, with what they are; the others are lists by report or order."""


_LEVELS: Final = frozenset(
    "lip alip_low alip_high secret_ldp answer_ldp ceiling srlip dpv realised_epsilon".split()
)
"""Names that are rounded up where they are printed."""


class MeasureOptions(TypedDict, total=False):
    """Measures in addition to those that are always computed.

    attributes : number of values of each attribute, for srlip. sensitive : row of a secret, for dpv.
    orders : of the α-lift and of Sibson's and Arimoto's information, 1e-6 to 1e6 or "inf"; default
    [2]. breaches : probabilities of events. targets : rows W, shape (targets, answers), for
    target_variances.
    """

    attributes: Sequence[int]
    sensitive: int
    orders: Sequence[Number]
    breaches: Sequence[Number]
    targets: Any


class Measures(Mapping[str, Any]):
    """Figures of a mechanism by their names in spec 1.8; levels are rounded up, `math.inf` if infinite.

    Read them as ``measures["lip"]``. A notebook shows the single numbers as a table.
    """

    def __init__(self, figures: dict[str, Any]) -> None:
        """Wrap figures by name; `measure` calls this."""
        self._figures = figures

    def __getitem__(self, name: str) -> Any:
        return self._figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def to_series(self) -> Any:
        """Return the single numbers as a pandas Series."""
        names = [name for name, _ in self._lines()]
        return shown.frame([[self._figures[name]] for name in names], ["measure"], names)["measure"]

    def _lines(self) -> list[tuple[str, str]]:
        return [(name, said) for name, said in SAID.items() if name in self._figures]

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [(name, self._figures[name], said) for name, said in self._lines()]
        return [
            (name, shown.up(value) if name in _LEVELS else shown.number(value), said)
            for name, value, said in rows
        ]

    def __repr__(self) -> str:
        return shown.aligned(self._rows())

    def _repr_html_(self) -> str:
        return shown.table_html(("measure", "value", "meaning"), self._rows())


def measure(mechanism: Any, prior: Any, **options: Unpack[MeasureOptions]) -> Measures:
    """Measure any mechanism, private or not: leakage by every notion, lifts, information, variance.

    Parameters
    ----------
    mechanism : a `Design`, its `mechanism`, or the channel Q(y|x) as an array, lists or a pandas
        table of shape (answers, reports): probabilities whose rows sum to 1 within 1e-9, or whole
        numbers with equal row sums.
    prior : joint counts or probabilities of secrets (rows) and answers (columns), as in `design`.
        With s·u rows in the channel and s × u counts, answers are the pairs (s, u), row-major.
    options : see `MeasureOptions`.

    Raises InvalidInput, naming the field.
    """
    if hasattr(mechanism, "aligned_prior"):  # a Design
        prior, mechanism = mechanism.aligned_prior(prior), mechanism.mechanism
    given = prior_table(prior)
    if isinstance(mechanism, DenseMechanism):
        described: dict[str, Any] = {"weights": [list(row) for row in mechanism.weights]}
    elif hasattr(mechanism, "kind"):
        return Measures(_of_sets(mechanism, prior, options))
    else:
        size = len(table(mechanism, "matrix").rows)
        rows = aligned(mechanism, answer_labels(given, size), "matrix", axis=0).rows
        whole = all(isinstance(v, int) for row in rows for v in row)
        described = {"weights" if whole else "matrix": rows}
    body = described | {"prior": {"joint": given.rows}}
    known = MeasureOptions.__annotations__.keys()
    for name, value in options.items():
        if name not in known:
            raise InvalidInput(Problem.FIELD_UNKNOWN, f"the options are {', '.join(known)}", name)
        body[name] = (
            aligned(value, answer_labels(given, len(table(value, name).rows[0])), name).rows
            if name == "targets" and not isinstance(value, str)
            else exact(value, name)
        )
    return Measures(measured(MeasureRequest.from_json(body)))


def _of_sets(mechanism: Any, prior: Any, options: MeasureOptions) -> dict[str, Any]:
    if options:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "options need a table: give the mechanism's channel instead",
            min(options),
        )
    read = Prior.from_rows(prior_table(prior).rows)
    if not isinstance(mechanism, Mechanism) or mechanism.answers != read.answers:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            "the prior needs one column for each answer of the mechanism",
            "prior",
        )
    return measures(mechanism, read)
