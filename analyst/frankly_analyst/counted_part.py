# SPDX-License-Identifier: Apache-2.0
"""Counts of one part of a survey: the questions that one mechanism randomises (spec 8.11).

Everything here is plain arithmetic on lists, so that an analyst can follow or repeat each step.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import fsum, prod
from typing import Any, Final, Self

from frankly_analyst.errors import InvalidRequest

TABLE: Final = "table"
SETS: Final = "sets"
Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a question; label by language.

    score : its value on a scale. role : "no_answer" or "not_applicable" for a choice that is not an
    answer. low : smallest number of its range. Each is None for most choices.
    """

    id: str
    label: Mapping[str, str]
    score: float | None = None
    role: str | None = None
    low: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a choice of the server's response."""
        return cls(
            value["id"], value["label"], value.get("score"), value.get("role"), value.get("from")
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its choices; text by language."""

    id: str
    text: Mapping[str, str]
    choices: tuple[Choice, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a question of the server's response."""
        return cls(value["id"], value["text"], tuple(map(Choice.from_json, value["choices"])))


@dataclass(frozen=True, slots=True)
class Factor:
    """One mechanism of a part; the factors of a part are independent given the answers.

    Of a table: P(symbol y | answer x) = weights[x][y] / denominator, and decoder[x][y] is the score
    of symbol y for answer x, whose mean over the reports is the unbiased share of x. A row of the
    decoder is None if the share cannot be estimated.

    Of sets: answer x is in the set with probability `inside` if it is the truth, else `outside`;
    decoder[x] contains a score that every report gets, and a score for each answer in the set.
    `weights` is empty.

    design_prior : counts of the answers for which the decoder was computed.
    name : of the mechanism's kind, such as "dense", "unary" or "subset".
    """

    name: str
    decoder: tuple[Row | None, ...]
    design_prior: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...] = ()
    denominator: int = 1
    inside: Fraction | None = None
    outside: Fraction | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a factor of the server's response."""
        chances = (value.get("inside"), value.get("outside"))
        inside, outside = (None if chance is None else Fraction(*chance) for chance in chances)
        return cls(
            value["name"],
            _rows(value["decoder"]),
            tuple(value["design_prior"]),
            tuple(map(tuple, value.get("weights", ()))),
            value.get("denominator", 1),
            inside,
            outside,
        )

    @property
    def law(self) -> tuple[Row, ...]:
        """P(y | x) of a table, one row per answer x; empty for sets."""
        return tuple(tuple(w / self.denominator for w in row) for row in self.weights)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Released counts of the reports with these public answers (and of this period).

    counts : of a table, the number of reports by symbol; of sets, the number of sets that contain
    each answer. pairs : of sets, pairs[x][z] is the number of sets that contain both x and z.
    masks : (set as a bit mask, number of reports), if they are counted; bit x represents answer x.
    """

    by: Mapping[str, str]
    n: int
    counts: tuple[int, ...]
    pairs: tuple[tuple[int, ...], ...] = ()
    masks: tuple[tuple[int, int], ...] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a stratum of the server's response."""
        if "pairs" not in value:
            return cls(value["by"], value["n"], tuple(value["counts"]))
        pairs, masks = tuple(map(tuple, value["pairs"])), value["masks"]
        counts = tuple(row[x] for x, row in enumerate(pairs))
        listed = None if masks is None else tuple((mask, n) for mask, n in masks)
        return cls(value["by"], value["n"], counts, pairs, listed)

    def __add__(self, other: "Stratum") -> "Stratum":
        """Return the sum of two strata of one part, with the public answers that both have."""
        shared = {name: choice for name, choice in self.by.items() if other.by.get(name) == choice}
        masks = None
        # If only one stratum has masks, they would cover only its reports.
        if self.masks is not None and other.masks is not None:
            sums = dict(self.masks)
            for mask, n in other.masks:
                sums[mask] = sums.get(mask, 0) + n
            masks = tuple(sorted(sums.items()))
        pairs = zip(self.pairs, other.pairs, strict=True)
        return Stratum(
            shared,
            self.n + other.n,
            _added(self.counts, other.counts),
            tuple(_added(row, other_row) for row, other_row in pairs),
            masks,
        )

    @property
    def group(self) -> str:
        """The public answers as text: ``region=north sex=f``."""
        return " ".join(f"{name}={choice}" for name, choice in self.by.items())


@dataclass(frozen=True)
class CountedPart:
    """Counts of a block, of a part of a form, or of two blocks together, in one document or arm.

    Joint answers, and joint symbols of several factors, are row-major: the last varies fastest.

    document, version, release : digest and version of the document, and its newest release in the
        counts. arm : the arm whose reports are counted; None for a document without arms.
    block : ids of the blocks. kind : "table" or "sets".
    n : released reports that contain the part. minimum : strata with fewer reports are withheld.
    withheld_strata, withheld_reports : number of these strata, and of the reports in them.
    without_stratum : reports that were released without their public answers.
    rest : the reports in no stratum (withheld, or without public answers) together; None if there
        are none, or if the part has fewer reports than `minimum`.
    marginals : decoders of subsets of the questions, by their ids, if some joint answers have no
        decoder; otherwise empty.
    """

    document: str
    version: int
    release: int
    block: str
    questions: tuple[Question, ...]
    kind: str
    factors: tuple[Factor, ...]
    n: int
    minimum: int
    strata: tuple[Stratum, ...] = field(repr=False)
    withheld_strata: int = 0
    withheld_reports: int = 0
    without_stratum: int = 0
    rest: Stratum | None = field(default=None, repr=False)
    marginals: Mapping[tuple[str, ...], tuple[Row | None, ...]] = field(
        default_factory=dict, repr=False
    )
    arm: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a part of the server's response. Raises KeyError or TypeError if malformed."""
        copied = ("document", "version", "release", "block", "kind", "n", "minimum")
        return cls(
            **{name: value[name] for name in copied},
            questions=tuple(map(Question.from_json, value["questions"])),
            factors=tuple(map(Factor.from_json, value["factors"])),
            strata=tuple(map(Stratum.from_json, value["strata"])),
            withheld_strata=value["withheld"]["strata"],
            withheld_reports=value["withheld"]["reports"],
            without_stratum=value["without_stratum"],
            # A response without public questions, or of an earlier server, has none.
            rest=Stratum.from_json({"by": {}} | value["rest"]) if value.get("rest") else None,
            marginals={
                tuple(marginal["questions"]): _rows(marginal["decoder"])
                for marginal in value.get("marginals", ())
            },
            arm=value.get("arm"),
        )

    @property
    def key(self) -> str:
        """The document's digest, with arms followed by a space and the arm."""
        return self.document if self.arm is None else f"{self.document} {self.arm}"

    @property
    def id(self) -> str:
        """Question ids, joined by `` × `` as in estimates."""
        return " × ".join(question.id for question in self.questions)

    @property
    def answers(self) -> list[tuple[str, ...]]:
        """Joint answers as tuples of choice ids, in the order of the decoder's rows."""
        return list(product(*([c.id for c in q.choices] for q in self.questions)))

    @cached_property
    def decoder(self) -> tuple[Row | None, ...]:
        """Scores of each joint answer by joint symbol (see `Factor`): the product of the factors."""
        return reduce(_times_rows, (factor.decoder for factor in self.factors))

    @cached_property
    def law(self) -> tuple[Row, ...]:
        """P(joint symbol | joint answer) of a table; empty for sets."""
        return reduce(_times, (factor.law for factor in self.factors))

    @property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Exact whole numbers proportional to `law`; every row sums to `denominator`."""
        return reduce(_times, (factor.weights for factor in self.factors))

    @property
    def denominator(self) -> int:
        """Sum of a row of `weights`."""
        return prod(factor.denominator for factor in self.factors)

    def stratum(self, **by: str) -> Stratum:
        """Return the sum of the strata with these public answers; without any, of all strata.

        Raises InvalidRequest(strata_invalid) if there is none.
        """
        matching = [
            s for s in self.strata if all(s.by.get(k) == choice for k, choice in by.items())
        ]
        if not matching:
            detail = "no stratum has these public answers, or it has too few reports"
            raise InvalidRequest(detail, code="strata_invalid", field="by")
        return reduce(Stratum.__add__, matching)

    def scores(self, *questions: str) -> tuple[Row | None, ...]:
        """Return the scores of each joint answer or, with questions, of each cell of their table.

        A row is None if the share cannot be estimated. Raises InvalidRequest(targets_invalid) for
        a question of another part.
        """
        if not questions:
            return self.decoder
        cells = self.cells(*questions)
        for names, rows in self.marginals.items():
            if sorted(names) == sorted(questions):
                # The cells are the same, but their order may differ.
                order = self.cells(*names)
                return tuple(rows[order.index(cell)] for cell in cells)
        # Decoding is linear, so the scores of a cell are the sums of those of its joint answers.
        return tuple(_sum_of([self.decoder[x] for x, w in enumerate(cell) if w]) for cell in cells)

    def shares(self, stratum: Stratum, *questions: str) -> list[float | None]:
        """Return the unbiased share of each joint answer or, with questions, of each cell.

        Cells are row-major in the order of the questions. A share is None if it cannot be
        estimated. Raises like `scores`.
        """
        means = [c / stratum.n for c in stratum.counts]
        # The first score of a set's decoder belongs to every report.
        means = [1.0, *means] if self.kind == SETS else means
        return [None if row is None else _dot(row, means) for row in self.scores(*questions)]

    def covariance(self, stratum: Stratum, *questions: str) -> list[list[float | None]]:
        """Return the covariance matrix of `shares`; for a table, V(diag(λ) − λλᵀ)Vᵀ/(n − 1).

        λ are the observed shares of the symbols, V are the scores. For sets the matrix in the
        middle is the covariance of the memberships, from the counts of pairs. Entries of a share
        that cannot be estimated are None. The stratum needs two reports. Raises like `scores`.
        """
        scores = self.scores(*questions)
        estimable = [x for x, row in enumerate(scores) if row is not None]
        rows = [row for row in scores if row is not None]
        second = _of_sets(rows, stratum) if self.kind == SETS else _of_table(rows, stratum)
        matrix: list[list[float | None]] = [[None] * len(scores) for _ in scores]
        for x, row in zip(estimable, second, strict=True):
            for z, value in zip(estimable, row, strict=True):
                matrix[x][z] = value / (stratum.n - 1)
        return matrix

    def cells(self, *questions: str) -> list[tuple[int, ...]]:
        """Return weights over the joint answers: a row of 0 and 1 for each cell of a table.

        The share of a cell is the sum of the shares of its joint answers. Cells are row-major in
        the order of the questions. Raises InvalidRequest(targets_invalid) for a question of another
        part.
        """
        places = {question.id: i for i, question in enumerate(self.questions)}
        if not set(questions) <= places.keys() or len(set(questions)) < len(questions):
            detail = f"name each once; the questions of this part are {', '.join(places)}"
            raise InvalidRequest(detail, code="targets_invalid", field="question")
        chosen = [places[name] for name in questions]
        choices = [[choice.id for choice in self.questions[i].choices] for i in chosen]
        answers = [tuple(answer[i] for i in chosen) for answer in self.answers]
        return [tuple(int(answer == cell) for answer in answers) for cell in product(*choices)]


def _of_table(rows: Sequence[Row], stratum: Stratum) -> list[list[float]]:
    """Return the mean of (v − v̄)(v − v̄)ᵀ over the reports, v the scores of a report's symbol."""
    # Symbols without reports contribute nothing, and most symbols of a large table have none.
    observed = [y for y, count in enumerate(stratum.counts) if count]
    rates = [stratum.counts[y] / stratum.n for y in observed]
    # Centred before multiplication: subtracting squares from second moments would lose digits.
    centred = []
    for row in rows:
        values = [row[y] for y in observed]
        mean = _dot(values, rates)
        centred.append([value - mean for value in values])
    weighted = [[v * rate for v, rate in zip(row, rates, strict=True)] for row in centred]
    return [[_dot(row, other_row) for other_row in centred] for row in weighted]


def _of_sets(rows: Sequence[Row], stratum: Stratum) -> list[list[float]]:
    n, held = stratum.n, stratum.counts
    # Whole numbers up to the division, because pairs/n − held·held/n² would lose digits.
    middle = [
        [(n * c - held[x] * held[z]) / (n * n) for z, c in enumerate(row)]
        for x, row in enumerate(stratum.pairs)
    ]
    # The first score is the same for every report, so it has no variance.
    scores = [row[1:] for row in rows]
    products = [[_dot(row, column) for column in middle] for row in scores]  # `middle` is symmetric
    return [[_dot(row, other_row) for other_row in scores] for row in products]


def _dot(left: Iterable[float], right: Iterable[float]) -> float:
    return fsum(a * b for a, b in zip(left, right, strict=True))


def _added(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _sum_of(rows: Sequence[Row | None]) -> Row | None:
    """Return the sum of rows of scores, or None if one of them is None."""
    estimable = [row for row in rows if row is not None]
    return tuple(map(fsum, zip(*estimable, strict=True))) if len(estimable) == len(rows) else None


def _rows(values: Sequence[Sequence[float] | None]) -> tuple[Row | None, ...]:
    return tuple(None if row is None else tuple(row) for row in values)


def _times(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> Any:
    """Return the Kronecker product."""
    return tuple(tuple(a * b for a in row for b in other) for row in left for other in right)


def _times_rows(left: Sequence[Row | None], right: Sequence[Row | None]) -> Any:
    """Return the Kronecker product of decoders; a row is None if the row of a factor is None."""
    return tuple(
        None if row is None or other is None else tuple(a * b for a in row for b in other)
        for row in left
        for other in right
    )
