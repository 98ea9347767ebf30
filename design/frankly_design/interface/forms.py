# SPDX-License-Identifier: Apache-2.0
"""Forms: many questions under one level, designed together (docs/maths/forms.md)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Unpack

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem

from frankly_design.form import engine
from frankly_design.interface import shown
from frankly_design.interface.estimates import EstimateOptions, Estimates, estimate_shares
from frankly_design.interface.tables import Number, exact, plain, read_limits, table
from frankly_design.kinds.parts import part_table
from frankly_design.requests.design import DesignInput
from frankly_design.requests.design_fields import never_stopped, no_time, search_limits
from frankly_design.requests.design_form import parts_about, shown_share
from frankly_design.tables.limits import Progress


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a form.

    choices : their number, 2 to 64, or an expected count of each. wanted : "shares"; "mean" of
    `scores`, one for each answer; "distribution" (cumulative shares, for choices in order); or
    "contrast", the sum of the shares times the numbers in `contrast`. roles : how many of the last
    choices are no answers ("prefer not to say"). importance : weight of its variance, above 0.
    """

    choices: int | Sequence[int]
    wanted: str = "shares"
    scores: Sequence[Number] | None = None
    contrast: Sequence[Number] | None = None
    roles: int = 0
    importance: Number = 1

    def to_json(self) -> dict[str, Any]:
        """Return the question as a field of a JSON request (spec 1.9)."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: exact(value, name) for name, value in fields.items() if value is not None}


class Form:
    """Designed form: one report shows some of the questions, and all answers share one level.

    Attributes
    ----------
    mechanism : in whole numbers, of the kind `agreement`.
    """

    def __init__(self, designed: engine.FormDesign) -> None:
        """Wrap a designed form; `design_form` calls this."""
        self._designed = designed
        self.mechanism: AgreementMechanism = designed.mechanism

    @property
    def value(self) -> float:
        """Σ importance · variance of the wanted figures, from one report at the expected counts."""
        return self._designed.value

    @property
    def bound(self) -> float:
        """Lower bound of the value of any mechanism of this level; 0 if none is known. May be slow."""
        return self._designed.bound

    @property
    def variances(self) -> tuple[float, ...]:
        """Variance of each question's wanted figures, from one report."""
        return self._designed.variances

    @property
    def pair_variances(self) -> tuple[float, ...]:
        """Variance of each requested cross table: the sum over its cells, from one report."""
        return self._designed.pair_variances

    def shown(self, *questions: int) -> float:
        """Return the share of reports on which estimates about these questions rest."""
        return shown_share(self._designed, self._asked(questions))

    def _asked(self, questions: tuple[int, ...]) -> tuple[int, ...]:
        places = range(len(self.mechanism.choices))
        if (
            not questions
            or len(set(questions)) < len(questions)
            or any(type(q) is not int or q not in places for q in questions)
        ):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                f"name different questions by their positions, 0 to {len(places) - 1}",
                "questions",
            )
        return questions

    def sample(self, answers: Any) -> list[tuple[int, ...]]:
        """Draw a report for each person, exactly, with the system's secure random numbers.

        answers : the choice of every question of each person, shape (people, questions), from 0:
            lists, an array or a pandas table.

        Raises InvalidInput for an answer that is no choice, without repeating it.
        """
        sizes, reports = self.mechanism.choices, []
        for row in _people(answers):
            truth = tuple(row)
            if len(truth) != len(sizes) or any(
                type(x) is not int or not 0 <= x < size
                for x, size in zip(truth, sizes, strict=False)
            ):
                raise InvalidInput(
                    Problem.FIELD_TYPE,
                    f"give one choice of each of {len(sizes)} questions",
                    "answers",
                )
            reports.append(self.mechanism.sample(truth))
        return reports

    def estimate(
        self, reports: Iterable[Sequence[int]], *questions: int, **options: Unpack[EstimateOptions]
    ) -> Estimates:
        """Estimate the shares of a question's choices, or of the joint choices of several, without bias.

        questions : positions. options : population, census, confidence_level and beta of `estimate_shares`.

        Raises InvalidInput(not_identifiable) if no report shows the questions together.
        """
        sizes = self.mechanism.choices
        parts = parts_about(self._designed, self._asked(questions))
        table = part_table(self.mechanism, parts)
        checked = (self.mechanism.check_symbol(plain(report), "reports") for report in reports)
        seen = Counter(map(table.column, checked))
        asked = [question for part in parts for question in self.mechanism.parts[part]]
        wanted = list(product(*(range(sizes[question]) for question in questions)))
        joint = list(product(*(range(sizes[question]) for question in asked)))
        places = [asked.index(question) for question in questions]
        rows = [[int(tuple(x[p] for p in places) == w) for x in joint] for w in wanted]
        counts = [seen[y] for y in range(table.reports)]
        if foreign := sorted({"targets", "labels", "design_prior"} & options.keys()):
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                "a form estimates shares: combine them as you need",
                foreign[0],
            )
        options["targets"] = rows
        found = estimate_shares(table, counts, **options)
        return Estimates(found.figures, [w[0] if len(w) == 1 else w for w in wanted])

    def __repr__(self) -> str:
        head = ("question", "choices", "variance, one report", "reports that show it")
        lines = [
            (str(i), str(size), f"{variance:.4g}", f"{self.shown(i):.1%}")
            for i, (size, variance) in enumerate(
                zip(self.mechanism.choices, self.variances, strict=True)
            )
        ]
        return shown.aligned([head, *lines])


def design_form(
    questions: Sequence[Question],
    epsilon: Number,
    *,
    cross_tables: Sequence[tuple[int, int]] = (),
    timer: Callable[[], float] = no_time,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = never_stopped,
    limits: dict[str, Any] | None = None,
) -> Form:
    """Design many questions under one level of LDP for all answers together.

    Parameters
    ----------
    questions : 1 to 64. epsilon : nats, for all answers together.
    cross_tables : pairs of positions whose joint shares are wanted too.
    timer, progress, stopped, limits : see `design`.

    Raises InvalidInput, naming the field.
    """
    questions = [questions] if isinstance(questions, Question) else questions
    if not all(isinstance(question, Question) for question in questions):
        raise InvalidInput(Problem.FIELD_TYPE, "give questions such as Question(3)", "questions")
    body: dict[str, Any] = {
        "form": {
            "questions": [question.to_json() for question in questions],
            "epsilon": exact(epsilon, "form.epsilon"),
            "cross_tables": exact(cross_tables, "form.cross_tables"),
        }
    }
    if limits is not None:
        body["limits"] = read_limits(limits, timer)
    fields = DesignInput.from_json(body)
    within = search_limits(fields.limits, timer, progress, stopped)
    assert fields.form is not None  # noqa: S101 - given above
    return Form(engine.design_form(fields.form.request(fields.form.epsilon, within)))


def _people(answers: Any) -> Iterator[list[Any]]:
    if not isinstance(answers, Iterable):
        raise InvalidInput(Problem.FIELD_TYPE, "give the answers of each person", "answers")
    if not hasattr(answers, "to_numpy") and not hasattr(answers, "tolist"):
        yield from ([*exact(row, "answers")] if _is_row(row) else [] for row in answers)
    else:
        yield from table(answers, "answers").rows


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple) or hasattr(row, "tolist")
