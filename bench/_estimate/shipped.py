# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of all example designs, templates and demo surveys, with their least report counts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import combinations
from pathlib import Path

import numpy as np
from frankly_design.form.joint_tables import is_estimable
from frankly_design.kinds.parts import part_table
from frankly_design.requests.design import design_json
from frankly_protocol.mechanisms import (
    BLOCK_KINDS,
    AgreementMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
)
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.drafting import draft_blocks
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
DESIGNS = ROOT / "docs/examples/design"
SURVEYS = (
    *sorted((ROOT / "server/frankly_server/surveys/templates").glob("*.yaml")),
    *(ROOT / "examples" / name / "survey.yaml" for name in ("affairs", "workplace", "multi")),
)
USUAL = 50
"""Least number of reports for a design without a survey: half of the surveys' default."""
MOST_CELLS, MOST_SYMBOLS = 40, 600


@dataclass(frozen=True)
class Shipped:
    """A mechanism with its design prior.

    questions : numbers of choices of the questions of the block, or of the blocks of a cross-table.
    least : least number of reports for estimates.
    """

    name: str
    mechanism: Mechanism
    prior: tuple[int, ...] | None
    questions: tuple[int, ...]
    least: int


def example_designs() -> Iterator[Shipped]:
    """Yield the mechanism of every file of docs/examples/design."""
    for path in sorted(DESIGNS.rglob("*.json")):
        request = json.loads(path.read_text(), parse_float=Decimal)
        response = design_json({key: value for key, value in request.items() if key != "frontier"})
        parameters = {
            "bits": response["bits"],
            **(response["params"] if "params" in response else {"weights": response["weights"]}),
        }
        name = str(path.relative_to(DESIGNS).with_suffix(""))
        mechanism = BLOCK_KINDS[response["kind"]].from_params(parameters, "mechanism")
        if isinstance(mechanism, AgreementMechanism):
            yield from _parts(name, mechanism, USUAL)
            continue
        prior = tuple(int(sum(column)) for column in zip(*request["prior"]["joint"], strict=True))
        if len(prior) != mechanism.answers:
            prior = tuple(int(v) for row in request["prior"]["joint"] for v in row)
        yield Shipped(name, mechanism, prior, (mechanism.answers,), USUAL)


def _parts(name: str, form: AgreementMechanism, least: int) -> Iterator[Shipped]:
    """Yield the table of the reports that show a part, for each part with a new table."""
    tables = set()
    for part, questions in enumerate(form.parts):
        table = part_table(form, (part,))
        if table.weights not in tables and is_estimable(form, (part,)):
            tables.add(table.weights)
            sizes = tuple(form.choices[question] for question in questions)
            yield Shipped(f"{name}: part {part}", table, None, sizes, least)


def surveys() -> Iterator[Shipped]:
    """Yield the mechanism of every block of the templates and demo surveys, and the cross-tables of two blocks."""
    for path in SURVEYS:
        definition = parse_definition(path.read_bytes())
        name = path.stem if path.stem != "survey" else f"{path.parent.name} (demo)"
        blocks = [drafted.block for drafted in draft_blocks(definition)]
        for block in blocks:
            if isinstance(block.mechanism, AgreementMechanism):
                yield from _parts(f"{name}: {block.id}", block.mechanism, definition.min_reports)
                continue
            sizes = tuple(len(question.choices) for question in block.questions)
            yield Shipped(
                f"{name}: {block.id}",
                block.numbered_mechanism,
                block.design_prior,
                sizes,
                definition.min_reports,
            )
        for pair in combinations(blocks, 2):
            factors = [block.mechanism for block in pair]
            if not all(isinstance(factor, DenseMechanism) for factor in factors):
                continue
            together = ProductMechanism(tuple(factors))  # type: ignore[arg-type]
            if together.answers > MOST_CELLS or together.reports > MOST_SYMBOLS:
                continue
            prior = reduce(
                lambda a, b: tuple(x * y for x in a for y in b),
                (block.design_prior for block in pair),
            )
            title, sizes = (
                f"{name}: {pair[0].id} × {pair[1].id}",
                tuple(factor.answers for factor in factors),
            )
            yield Shipped(title, together, prior, sizes, definition.min_reports)


def truths(answers: int, prior: tuple[int, ...] | None) -> dict[str, NDArray[np.float64]]:
    """Return true shares by name: even, zipf, all on one answer, design prior, and rare answers.

    `x rare` has answer x at 0.2% and all others as in the design prior; `x common` has all others
    at 0.2%. x is every answer if there are up to 8, otherwise the first and the last.
    """
    even, zipf = np.ones(answers), 1 / np.arange(1, answers + 1)
    base = even if prior is None else np.array(prior, dtype=float)
    by_name = {"even": even, "zipf": zipf, "point": np.eye(answers)[0], "prior": base}
    for x in range(answers) if answers <= 8 else (0, answers - 1):
        by_name[f"{x} common"] = np.where(np.arange(answers) == x, 1 - 0.002 * (answers - 1), 0.002)
        remaining = np.where(np.arange(answers) == x, 0, base)
        by_name[f"{x} rare"] = 0.998 * remaining / remaining.sum() + 0.002 * np.eye(answers)[x]
    return {name: p / p.sum() for name, p in by_name.items()}
