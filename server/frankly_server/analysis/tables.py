# SPDX-License-Identifier: Apache-2.0
"""Tables of an estimates request: questions, targets and their weights over a document's answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Final

from frankly_analyst.plots import NUMBER, SHARE
from frankly_analyst.request import ANSWERED, INVERSE_VARIANCE, SCALES, WANTED
from frankly_design.estimate.scales import Figure, Scale, wanted_figures
from frankly_design.form.joint_tables import is_estimable
from frankly_design.kinds.decoder import Targets, decoder, shares
from frankly_design.kinds.dense import table_of
from frankly_design.kinds.parts import clear_blocks, counted_blocks, part_of
from frankly_design.numeric import rational
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.questions import DISTRIBUTION

from frankly_server.analysis.counted_document import Blocks, Received
from frankly_server.analysis.request import VERSION, Combination, Request

Texts = Mapping[str, str]
Weights = tuple[Fraction, ...]
_ZERO, _ONE = Fraction(0), Fraction(1)
_BETWEEN, _AMONG = " × ", " | "
_ID_SEPARATOR: Final = ","
"""Separator of question ids, and of choice ids of a cell, in a request."""
_MAX_CELLS, _MAX_PERCENT_CELLS = 1024, 100


@dataclass(frozen=True, slots=True)
class Target:
    """One row: id, label by language, and weights over the cells of the table.

    Cells are row-major, the last question fastest. over : weights of a ratio's denominator, else
    None. unit : SHARE or NUMBER.
    """

    id: str
    label: Texts
    weights: tuple[Fraction, ...]
    over: tuple[Fraction, ...] | None = None
    unit: str = SHARE


@dataclass(frozen=True, slots=True)
class Table:
    """A table of rows about one or several questions.

    sources : documents that contain these question and choice ids, oldest first.
    shares : True if the rows are the shares of all cells, in order.
    percent : "row" or "column" if the shares are within a row or a column, else None.
    scale : the scale if the rows are its mean and distribution (the median is added later), else
        None.
    """

    questions: tuple[Question, ...]
    targets: tuple[Target, ...]
    sources: tuple[Received, ...]
    shares: bool
    percent: str | None = None
    scale: Scale | None = None

    @property
    def id(self) -> str:
        """Question ids; "B | A" for shares of B's choices among people with one answer to A."""
        return _named([question.id for question in self.questions], self.percent)

    @property
    def text(self) -> dict[str, str]:
        """Question texts by language, joined like `id`."""
        first = self.questions[0].text
        return {
            name: _named([question.text[name] for question in self.questions], self.percent)
            for name in first
        }


def tables(documents: Sequence[Received], request: Request) -> list[Table]:
    """Return the requested tables.

    Raises InvalidInput: targets_invalid for questions or choices that do not exist, unsupported for
    inverse-variance weights of wanted ratios.
    """
    if request.joint is not None:
        return [_joint_table(documents, request.joint, request.percent, "targets")]
    groups = _grouped_by_ids(documents)
    if request.targets == SCALES:
        return _scales(groups)
    if request.combinations is None:
        if request.percent == ANSWERED:
            return [Table((q,), _among_answered(q), sources, shares=False) for q, sources in groups]
        return [_of_one(q, sources, request) for q, sources in groups]
    # Reversed, so that the newest of several questions with the same id remains.
    newest = {question.id: (question, sources) for question, sources in reversed(groups)}
    requested = []
    for name, combinations in request.combinations.items():
        if name in newest:
            question, sources = newest[name]
            cells = Table((question,), _shares((question,)), sources, shares=True)
        else:
            cells = _joint_table(documents, name.split(_ID_SEPARATOR), None, f"targets.{name}")
        requested.append(
            replace(cells, targets=_combined(cells, combinations, f"targets.{name}"), shares=False)
        )
    return requested


def _scales(groups: Sequence[tuple[Question, tuple[Received, ...]]]) -> list[Table]:
    """Return a table for each question with a scale."""
    scale_tables = []
    for question, sources in groups:
        scale = Scale.of(question)
        if scale is not None:
            targets = _targets(question, scale.figures)
            scale_tables.append(Table((question,), targets, sources, shares=False, scale=scale))
    if not scale_tables:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            "no question of this survey has scores or ranges: request shares",
            "targets",
        )
    return scale_tables


def _of_one(question: Question, sources: tuple[Received, ...], request: Request) -> Table:
    """Return the table of a question: its wanted figures, or the shares of its choices."""
    if request.targets != WANTED:
        return Table((question,), _shares((question,)), sources, shares=True)
    figures = wanted_figures(question)
    targets = _targets(question, figures) or _shares((question,))
    # Versions that were designed for another figure are not pooled with those that can estimate it.
    if len(sources) > 1 and request.group != VERSION:
        sources = tuple(one for one in sources if _estimates(one, question, targets)) or sources
    if not figures:
        return Table((question,), targets, sources, shares=True)
    if request.weights == INVERSE_VARIANCE and any(figure.over for figure in figures):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the wanted figure of {question.id} is a ratio, which needs a single weight per version: "
            "leave the weights out, or request shares",
            "weights",
        )
    # Quantiles are added to a distribution of numbers.
    scale = (
        Scale.of(question) if question.wanted and question.wanted.figure == DISTRIBUTION else None
    )
    return Table((question,), targets, sources, shares=False, scale=scale)


def _estimates(source: Received, question: Question, targets: Sequence[Target]) -> bool:
    """Return True if this version's reports can estimate every target, decided exactly."""
    places = blocks_of(source.document, (question,)) or ()
    blocks = [counted_blocks(source.document)[place] for place in places]
    table = table_of(blocks[0].mechanism)
    if table is None:
        return True  # sets and products are designed for all shares
    cells = cell_weights(blocks, Table((question,), tuple(targets), (source,), shares=False))
    rows = [row for target in targets for row in (target.weights, target.over) if row is not None]
    return None not in decoder(table, rational.product(rows, cells), blocks[0].design_prior).rows


def _targets(question: Question, figures: Sequence[Figure]) -> tuple[Target, ...]:
    return tuple(
        Target(
            figure.name,
            dict.fromkeys(question.text, figure.name),
            figure.weights,
            figure.over,
            NUMBER if figure.is_number else SHARE,
        )
        for figure in figures
    )


def blocks_of(document: SurveyDocument, questions: Sequence[Question]) -> Blocks | None:
    """Return the positions of counted blocks with these questions; None if a question is missing.

    The result is the smallest block with all questions, if there is one. Otherwise blocks are
    added, smallest first, until no question is missing. The ids of the choices must be equal too.
    """
    missing, positions = {_key(question) for question in questions}, []
    blocks = estimable_blocks(document)
    # The sort is stable, so blocks of equal size stay in the document's order.
    for position, block in sorted(blocks, key=lambda entry: len(entry[1].questions)):
        # A block with all questions was designed for their joint answers.
        if missing <= {_key(question) for question in block.questions}:
            return (position,)
    for position, block in sorted(blocks, key=lambda entry: len(entry[1].questions)):
        matching = missing & {_key(question) for question in block.questions}
        if matching:
            missing -= matching
            positions.append(position)
    return None if missing else tuple(sorted(positions))


def estimable_blocks(document: SurveyDocument) -> list[tuple[int, Block]]:
    """Return (position, block) of the counted blocks that can be estimated: parts, not forms."""
    return [
        (position, block)
        for position, block in enumerate(counted_blocks(document))
        if block.form is None
    ]


def _lacks_joint_table(document: SurveyDocument, questions: Sequence[Question]) -> bool:
    """Return True if a form contains several of these questions but not their joint table."""
    if len(questions) == 1:
        return False
    blocks = counted_blocks(document)
    tables = [blocks[i].mechanism for i in blocks_of(document, questions) or ()]
    parts = [part for part in map(part_of, tables) if part is not None]
    # By identity, because an equality test of two forms would compare all their tables.
    forms = {id(part.form): part.form for part in parts}
    return any(
        not is_estimable(form, tuple(i for part in parts if part.form is form for i in part.parts))
        for form in forms.values()
    )


def cell_weights(blocks: Sequence[Block], table: Table) -> Targets:
    """Return, for each cell of the table, its weights over the blocks' joint answers (0 or 1).

    Joint answers are row-major over all questions of the blocks in order, the last one fastest.
    """
    block_questions = [question for block in blocks for question in block.questions]
    places = [
        next(i for i, q in enumerate(block_questions) if _key(q) == _key(question))
        for question in table.questions
    ]
    sizes = [len(question.choices) for question in block_questions]
    # If the cells are the joint answers in order, return `shares`: the estimator recognises it.
    if places == list(range(len(block_questions))):
        return shares(prod(sizes))
    zero, unit = Fraction(0), Fraction(1)
    cells = list(product(*(range(len(question.choices)) for question in table.questions)))
    index = {cell: i for i, cell in enumerate(cells)}
    rows = [[zero] * prod(sizes) for _ in cells]
    for answer, choices in enumerate(product(*map(range, sizes))):
        rows[index[tuple(choices[place] for place in places)]][answer] = unit
    return tuple(map(tuple, rows))


def _grouped_by_ids(documents: Sequence[Received]) -> list[tuple[Question, tuple[Received, ...]]]:
    """Return questions with the documents (oldest first) that have the same question and choice ids.

    The order is that of the newest document.
    """
    groups: dict[tuple[str, ...], tuple[Question, list[Received]]] = {}
    # Newest first, because its texts, labels and order of questions are used.
    for received in reversed(documents):
        for block in (*received.document.blocks, *clear_blocks(received.document)):
            for question in (one for one in block.questions if not one.is_repeated):
                groups.setdefault(_key(question), (question, []))[1].append(received)
    return [(question, tuple(reversed(sources))) for question, sources in groups.values()]


def _joint_table(
    documents: Sequence[Received], ids: Sequence[str], percent: str | None, field: str
) -> Table:
    # Ids refer to the newest version; older versions may lack a question.
    document = documents[-1].document
    asked = (document.whole or document).questions.values()
    newest = {question.id: question for question in asked if not question.is_repeated}
    if not set(ids) <= set(newest) or len(set(ids)) < len(ids):
        raise _unknown("question", field)
    questions = tuple(newest[name] for name in ids)
    if prod(len(question.choices) for question in questions) > _MAX_CELLS:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            f"a table has at most {_MAX_CELLS} cells: name fewer questions",
            field,
        )
    sources = tuple(
        source for source in documents if blocks_of(source.document, questions) is not None
    )
    without_table = [source for source in sources if _lacks_joint_table(source.document, questions)]
    if sources and len(without_table) == len(sources):
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            "the joint table of these questions cannot be estimated from this form: "
            "cross_tables of the survey file must name them",
            field,
        )
    sources = tuple(source for source in sources if source not in without_table)
    if percent is None:
        return Table(questions, _shares(questions), sources, shares=True)
    # Each percentage has its own denominator, so the work grows with the square of the number of
    # cells.
    if prod(len(question.choices) for question in questions) > _MAX_PERCENT_CELLS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"percentages need a table of at most {_MAX_PERCENT_CELLS} cells: request the cells",
            "percent",
        )
    return Table(questions, _shares(questions, percent), sources, shares=False, percent=percent)


def _shares(questions: Sequence[Question], percent: str | None = None) -> tuple[Target, ...]:
    """Return the shares of all cells; with `percent`, within the cell's row or column."""
    cells = list(product(*(question.choices for question in questions)))
    place = 1 if percent == "column" else 0
    among = [
        tuple(_ONE if other_cell[place] is cell[place] else _ZERO for other_cell in cells)
        for cell in cells
    ]
    return tuple(
        Target(
            _named([choice.id for choice in cell], percent),
            {
                name: _named([choice.label[name] for choice in cell], percent)
                for name in cell[0].label
            },
            row,
            None if percent is None else over,
        )
        for cell, row, over in zip(cells, shares(len(cells)), among, strict=True)
    )


def _among_answered(question: Question) -> tuple[Target, ...]:
    """Return the shares of the choices without a role, among the people who chose one of these."""
    over = _answered((question,))
    return tuple(
        replace(target, over=None if all(over) else over)
        for target, answers in zip(_shares((question,)), over, strict=True)
        if answers
    )


def is_share(table: Table, target: Target) -> bool:
    """Return True for the share of some cells, but not all, in which every question has an answer.

    Among all people, or among those who answered; decided exactly. No cell contains a choice with a role.
    """
    answered = _answered(table.questions)
    if target.unit != SHARE or (target.over is not None and target.over != answered):
        return False
    needed = {(_ONE, _ONE), (_ZERO, _ONE)}
    return needed <= set(zip(target.weights, answered, strict=True)) <= needed | {(_ZERO, _ZERO)}


def _answered(questions: Sequence[Question]) -> Weights:
    """Return 1 for each cell in which no choice has a role, else 0."""
    cells = product(*(question.choices for question in questions))
    return tuple(_ONE if all(choice.role is None for choice in cell) else _ZERO for cell in cells)


def _named(names: Sequence[str], percent: str | None) -> str:
    """Return "A × B"; "B | A" for shares within a row (a choice of A), "A | B" within a column."""
    if percent is None:
        return _BETWEEN.join(names)
    return _AMONG.join(reversed(names) if percent == "row" else names)


def _combined(
    cells: Table, combinations: Mapping[str, Combination], field: str
) -> tuple[Target, ...]:
    """Return the combinations of a table's cells. Cells are named by comma-separated choice ids."""
    cell_names = [
        _ID_SEPARATOR.join(choice.id for choice in cell)
        for cell in product(*(q.choices for q in cells.questions))
    ]

    def weights(coefficients: Mapping[str, Fraction], field: str) -> tuple[Fraction, ...]:
        if not set(coefficients) <= set(cell_names):
            raise _unknown("choice", field)
        return tuple(coefficients.get(name, Fraction(0)) for name in cell_names)

    targets = []
    for name, combination in combinations.items():
        where = f"{field}.{name}"
        of, over = weights(combination.of, where), None
        if combination.over is not None:
            of, over = _divided(of, weights(combination.over, where), where)
        if combination.answered:
            of, over = _divided(of, _answered(cells.questions), where)
        unit = SHARE if all(abs(weight) <= 1 for weight in of) else NUMBER
        targets.append(Target(name, dict.fromkeys(cells.text, name), of, over, unit))
    return tuple(targets)


def _divided(of: Weights, over: Weights, field: str) -> tuple[Weights, Weights | None]:
    """Return (numerator, denominator) weights; (quotient, None) if the denominator is constant."""
    if any(weight != over[0] for weight in over):
        return of, over
    # A denominator that is 0 for every answer is a mistake of the caller.
    if not over[0]:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            "the denominator is 0 for every answer: give one of its choices a number other than 0",
            field,
        )
    return tuple(weight / over[0] for weight in of), None


def _key(question: Question) -> tuple[str, ...]:
    return (question.id, *(choice.id for choice in question.choices))


def _unknown(what: str, field: str) -> InvalidInput:
    return InvalidInput(
        Problem.TARGETS_INVALID, f"the survey has no such {what}: see its document", field
    )
