# SPDX-License-Identifier: Apache-2.0
"""Mechanisms and published decoders of a part as JSON values, for counts (spec 8.11)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from frankly_design.kinds.kind import Estimable, Kind
from frankly_design.kinds.product import MAX_CELLS
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.part import Part
from frankly_server.analysis.tables import Table as Asked
from frankly_server.analysis.tables import cell_weights

Prior = tuple[int, ...]
_MAX_ENTRIES: Final = MAX_CELLS
"""Largest table of a factor, answers × symbols."""


def factors_json(kind: Estimable, prior: Prior) -> list[dict[str, Any]]:
    """Return the factors of a part's mechanism, each with its decoder for the shares.

    prior : design prior over the joint answers.

    Raises InvalidInput(unsupported) if a table is too large for a response.
    """
    return [_factor_json(factor, margin) for factor, margin in kind.separately(prior)]


def _factor_json(kind: Kind, prior: Prior) -> dict[str, Any]:
    mechanism = kind.mechanism
    if not kind.is_set and mechanism.answers * mechanism.reports > _MAX_ENTRIES:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "the mechanism's table is too large for a response: request fewer questions",
            "questions",
        )
    return {
        "name": mechanism.kind,
        **kind.law_json,
        "design_prior": list(prior),
        "decoder": _floats(kind.share_rows(prior)),
    }


def marginals_json(part: Part, table: Sequence[str] | None) -> dict[str, Any]:
    """Return decoders of fewer questions where those of all joint answers do not suffice.

    A share can be identifiable even if the shares of its joint answers are not. The result contains
    the decoders of every single question and of the requested `table`.
    """
    questions = {question.id: question for block in part.blocks for question in block.questions}
    # At full rank every share is a sum of joint answers, so no further decoder is needed.
    if len(questions) == 1 or part.kind.rank == part.kind.answers:
        return {}
    names: list[tuple[str, ...]] = [(name,) for name in questions]
    names += [tuple(table)] if table is not None and 1 < len(table) < len(questions) else []
    marginals = []
    for ids in names:
        margin = Asked(tuple(questions[name] for name in ids), (), (), shares=True)
        solved = part.kind.decoder(cell_weights(part.blocks, margin), part.design_prior)
        if solved is None:  # sets tell all shares or none
            return {}
        marginals.append({"questions": list(ids), "decoder": _floats(solved.rows)})
    return {"marginals": marginals}


def _floats(rows: Sequence[Sequence[Fraction] | None]) -> list[list[float] | None]:
    # Floats suffice for estimates: no privacy decision is made from a decoder.
    return [None if row is None else list(map(float, row)) for row in rows]
