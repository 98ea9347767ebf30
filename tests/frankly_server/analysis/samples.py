# SPDX-License-Identifier: Apache-2.0
"""Results computed from counts by group, without a database."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
from frankly_design.kinds.decoder import shares
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.blocks import Block, Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from frankly_server.analysis.part import Part
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import estimates_json

from tests.frankly_protocol.samples import ldp_block, survey

Counts = Sequence[int] | np.ndarray
REGION = "region"


def question(name: str, size: int, **of_choices: Sequence[Any]) -> Question:
    """Return a question with choices c0, c1, …; each choice has its entry of every keyword (score,
    role, …)."""
    choices = tuple(Choice(f"c{x}", {"en": f"C{x}"}) for x in range(size))
    for name_of_field, values in of_choices.items():
        choices = tuple(
            replace(choice, **{name_of_field: value})
            for choice, value in zip(choices, values, strict=True)
        )
    return Question(name, {"en": f"{name}?"}, choices)


def block_about(mechanism: DenseMechanism, *questions: Question) -> Block:
    """Return a block about these questions with a uniform design prior."""
    return replace(
        ldp_block(),
        id=questions[0].id,
        questions=questions,
        mechanism=mechanism,
        design_prior=(1,) * mechanism.answers,
        ceiling=stated_ceiling(mechanism),
    )


def document_of(
    blocks: tuple[Block, ...], strata: tuple[Question, ...] = (), version: int = 1
) -> SurveyDocument:
    """Return a document with these blocks and public questions and a minimum of 20 reports."""
    return replace(
        survey(*blocks, version=version, prev=None if version == 1 else "sha256:" + "cd" * 32),
        strata=strata,
        min_reports=20,
    )


def received(
    document: SurveyDocument, by_group: Mapping[str, Counts], period: str = ""
) -> Received:
    """Return the document with counts of its only block by group of the public question, or "" for
    all groups."""
    cells: dict[Key, CellCounts] = {}
    for group, counts in by_group.items():
        stratum = json.dumps({REGION: group}, separators=(",", ":")) if group else ""
        tally: dict[tuple[int, ...], int] = {(y,): int(n) for y, n in enumerate(counts)}
        cells[(0,), stratum, period] = CellCounts(sum(tally.values()), tally)
    return Received(document, cells, 1)


def result(*sources: Received, **asked: Any) -> dict[str, Any]:
    """Return the result of a request about these documents, oldest first."""
    return estimates_json("ab" * 16, list(sources), Request.from_json(asked))


def law(mechanism: DenseMechanism) -> np.ndarray:
    """Return Q of a table as floats, with one row per answer."""
    rows = np.array([[float(w) for w in row] for row in mechanism.weights])
    return np.asarray(rows / mechanism.denominator)


def grr(answers: int, epsilon: float) -> DenseMechanism:
    """Return a randomised response mechanism."""
    off = int(2**40 / (exp(epsilon) + answers - 1))
    on = 2**40 - (answers - 1) * off
    return DenseMechanism(
        40, tuple(tuple(on if x == y else off for y in range(answers)) for x in range(answers))
    )


LIP = DenseMechanism(8, ((92, 30, 42, 92), (56, 66, 42, 92), (56, 30, 100, 70), (38, 48, 64, 106)))
"""Four answers with rows of different shapes, like an optimum for a skewed prior."""


def block_of(mechanism: Mechanism, prior: tuple[int, ...]) -> Block:
    """Return a block with one question that has a choice for each answer."""
    choices = tuple(Choice(f"c{x}", {"en": f"C{x}"}) for x in range(mechanism.answers))
    return replace(
        ldp_block(),
        questions=(Question("q", {"en": "Q?"}, choices),),
        mechanism=mechanism,
        design_prior=prior,
        ceiling=stated_ceiling(mechanism),
    )


def part(
    mechanism: DenseMechanism, counts: Sequence[int], prior: tuple[int, ...] | None = None
) -> Part:
    """Return the counts of a document with one question."""
    block = block_of(mechanism, prior or (1,) * mechanism.answers)
    return Part(
        (block,), sum(counts), {(y,): n for y, n in enumerate(counts)}, shares(mechanism.answers)
    )
