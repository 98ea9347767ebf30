# SPDX-License-Identifier: Apache-2.0
"""Which numbers are wanted of which questions, and how each document's answers make them up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Final

from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Blocks, Received
from frankly_server.analysis.request import Combination, Request
from frankly_server.estimate.decoder import Targets, shares

Words = Mapping[str, str]
Weights = tuple[Fraction, ...]
_BETWEEN, _AMONG = " × ", " | "
_ASKED: Final = ","
"""Between the ids of a joint table, and of its cells, in a request."""
_MOST_CELLS, _MOST_PERCENT = 1024, 100


@dataclass(frozen=True, slots=True)
class Target:
    """One row: a name, words, and weights over the cells of the table (row-major, the last question fastest).

    over : of a ratio's denominator, None for anything else.
    """

    id: str
    label: Words
    weights: tuple[Fraction, ...]
    over: tuple[Fraction, ...] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows about one or several questions; `sources` are the documents that asked them alike, oldest first.

    shares : whether the rows are the shares of all cells, in order. percent : "row" or "column" where they are shares
    within these.
    """

    questions: tuple[Question, ...]
    targets: tuple[Target, ...]
    sources: tuple[Received, ...]
    shares: bool
    percent: str | None = None

    @property
    def id(self) -> str:
        """The questions' ids; "B | A" for shares of B's choices among those with the same answer to A."""
        return _named([question.id for question in self.questions], self.percent)

    @property
    def text(self) -> dict[str, str]:
        """The questions' texts by language, likewise."""
        first = self.questions[0].text
        return {name: _named([question.text[name] for question in self.questions], self.percent) for name in first}


def tables(documents: Sequence[Received], request: Request) -> list[Table]:
    """Return the tables asked for. Raises InvalidInput(targets_invalid) for questions or choices that do not exist."""
    if request.joint is not None:
        return [_joint_table(documents, request.joint, request.percent, "targets")]
    alike = _asked_alike(documents)
    if request.combinations is None:
        return [Table((q,), _shares((q,)), sources, shares=True) for q, sources in alike]
    newest = {question.id: (question, sources) for question, sources in reversed(alike)}
    found = []
    for name, combinations in request.combinations.items():
        if name in newest:
            question, sources = newest[name]
            cells = Table((question,), _shares((question,)), sources, shares=True)
        else:
            cells = _joint_table(documents, name.split(_ASKED), None, f"targets.{name}")
        found.append(replace(cells, targets=_combined(cells, combinations, f"targets.{name}"), shares=False))
    return found


def blocks_of(document: SurveyDocument, questions: Sequence[Question]) -> Blocks | None:
    """Return the positions of the blocks that ask all the questions, each with the same choices; None if not all."""
    wanted, found = {_key(question) for question in questions}, []
    for position, block in enumerate(document.blocks):
        here = wanted & {_key(question) for question in block.questions}
        if here:
            wanted -= here
            found.append(position)
    return None if wanted else tuple(found)


def cell_weights(blocks: Sequence[Block], table: Table) -> Targets:
    """Return, for each cell of the table, the weights over the blocks' joint answers that sum to it.

    Joint answers are row-major over all questions of the blocks in order, the last one fastest. Where every answer is a
    cell, in order, these are the `shares` themselves, which the estimator knows again.
    """
    asked = [question for block in blocks for question in block.questions]
    places = [next(i for i, q in enumerate(asked) if _key(q) == _key(question)) for question in table.questions]
    sizes = [len(question.choices) for question in asked]
    if places == list(range(len(asked))):
        return shares(prod(sizes))
    zero, one = Fraction(0), Fraction(1)
    cells = list(product(*(range(len(question.choices)) for question in table.questions)))
    index = {cell: i for i, cell in enumerate(cells)}
    rows = [[zero] * prod(sizes) for _ in cells]
    for answer, choices in enumerate(product(*map(range, sizes))):
        rows[index[tuple(choices[place] for place in places)]][answer] = one
    return tuple(map(tuple, rows))


def _asked_alike(documents: Sequence[Received]) -> list[tuple[Question, tuple[Received, ...]]]:
    """Group the questions of all documents (oldest first) by the ids of question and choices, in the newest's order."""
    groups: dict[tuple[str, ...], tuple[Question, list[Received]]] = {}
    for received in reversed(documents):
        for block in received.document.blocks:
            for question in block.questions:
                groups.setdefault(_key(question), (question, []))[1].append(received)
    return [(question, tuple(reversed(sources))) for question, sources in groups.values()]


def _joint_table(documents: Sequence[Received], ids: Sequence[str], percent: str | None, field: str) -> Table:
    newest = {q.id: q for block in documents[-1].document.blocks for q in block.questions}
    if not set(ids) <= set(newest) or len(set(ids)) < len(ids):
        raise _unknown("question", field)
    questions = tuple(newest[name] for name in ids)
    if prod(len(question.choices) for question in questions) > _MOST_CELLS:
        words = f"a table has at most {_MOST_CELLS} cells: name fewer questions"
        raise InvalidInput(Problem.TARGETS_INVALID, words, field)
    sources = tuple(each for each in documents if blocks_of(each.document, questions) is not None)
    if percent is None:
        return Table(questions, _shares(questions), sources, shares=True)
    if prod(len(question.choices) for question in questions) > _MOST_PERCENT:
        words = f"percentages are of a table of at most {_MOST_PERCENT} cells: ask for the cells"
        raise InvalidInput(Problem.UNSUPPORTED, words, "percent")
    return Table(questions, _shares(questions, percent), sources, shares=False, percent=percent)


def _shares(questions: Sequence[Question], percent: str | None = None) -> tuple[Target, ...]:
    """Return the shares of all cells; with `percent`, those within the cell's row or column of two questions."""
    cells = list(product(*(question.choices for question in questions)))
    place = 1 if percent == "column" else 0
    among = [tuple(Fraction(int(other[place] is cell[place])) for other in cells) for cell in cells]
    return tuple(
        Target(
            _named([choice.id for choice in cell], percent),
            {name: _named([choice.label[name] for choice in cell], percent) for name in cell[0].label},
            row,
            None if percent is None else over,
        )
        for cell, row, over in zip(cells, shares(len(cells)), among, strict=True)
    )


def _named(names: Sequence[str], percent: str | None) -> str:
    """Return "A × B"; "B | A" for shares within a row, which is a choice of A, and "A | B" within a column."""
    if percent is None:
        return _BETWEEN.join(names)
    return _AMONG.join(reversed(names) if percent == "row" else names)


def _combined(cells: Table, combinations: Mapping[str, Combination], field: str) -> tuple[Target, ...]:
    """Return combinations of a table's cells, which go by the ids of their choices with commas between them."""
    known = [_ASKED.join(choice.id for choice in cell) for cell in product(*(q.choices for q in cells.questions))]

    def weights(coefficients: Mapping[str, Fraction], field: str) -> tuple[Fraction, ...]:
        if not set(coefficients) <= set(known):
            raise _unknown("choice", field)
        return tuple(coefficients.get(name, Fraction(0)) for name in known)

    found = []
    for name, combination in combinations.items():
        where = f"{field}.{name}"
        of, over = weights(combination.of, where), None
        if combination.over is not None:
            of, over = _divided(of, weights(combination.over, where), where)
        found.append(Target(name, dict.fromkeys(cells.text, name), of, over))
    return tuple(found)


def _divided(of: Weights, over: Weights, field: str) -> tuple[Weights, Weights | None]:
    """Return a ratio's weights; a denominator that is the same whatever people answer is a number to divide by."""
    if any(weight != over[0] for weight in over):
        return of, over
    if not over[0]:
        words = "the denominator is 0 whatever people answer: give a choice of it another number than 0"
        raise InvalidInput(Problem.TARGETS_INVALID, words, field)
    return tuple(weight / over[0] for weight in of), None


def _key(question: Question) -> tuple[str, ...]:
    return (question.id, *(choice.id for choice in question.choices))


def _unknown(what: str, field: str) -> InvalidInput:
    return InvalidInput(Problem.TARGETS_INVALID, f"the survey has no such {what}: see its document", field)
