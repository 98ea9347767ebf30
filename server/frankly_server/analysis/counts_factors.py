# SPDX-License-Identifier: Apache-2.0
"""Mechanisms and published decoders of a part as JSON values, for counts (spec 8.11)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from frankly_design.estimate.decoder import (
    MAX_CELLS,
    Table,
    decoder,
    factor_decoders,
    shares,
    weights_of,
)
from frankly_design.estimate.factors import SetFactor
from frankly_design.estimate.joint import Joint, Source, block_priors
from frankly_design.estimate.set_law import SetMechanism, chances
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem

from frankly_server.analysis.part import Part
from frankly_server.analysis.tables import Table as Asked
from frankly_server.analysis.tables import cell_weights

Prior = tuple[int, ...]
_MAX_ENTRIES: Final = MAX_CELLS
"""Largest table of a factor, answers × symbols."""


def factors_json(mechanism: Source, prior: Prior) -> list[dict[str, Any]]:
    """Return the factors of a part's mechanism, each with its decoder for the shares.

    prior : design prior over the joint answers.

    Raises InvalidInput(unsupported) if a table is too large for a response.
    """
    if isinstance(mechanism, Joint):
        pairs = zip(mechanism.blocks, block_priors(mechanism, prior), strict=True)
        return [_factor(block, margin or ()) for block, margin in pairs]
    if isinstance(mechanism, ProductMechanism):
        decoders = factor_decoders(mechanism, prior)
        # Without full rank the decoder of the whole table is published, which is not a product.
        if decoders is not None:
            return [_table(solved.mechanism, solved.design_prior or ()) for solved in decoders]
    return [_factor(mechanism, prior)]


def marginals_json(part: Part, mechanism: Source, table: Sequence[str] | None) -> dict[str, Any]:
    """Return decoders of fewer questions where those of all joint answers do not suffice.

    A share can be identifiable even if the shares of its joint answers are not. The result contains
    the decoders of every single question and of the requested `table`.
    """
    questions = {question.id: question for block in part.blocks for question in block.questions}
    prior = part.design_prior
    if not isinstance(mechanism, DenseMechanism | ProductMechanism) or len(questions) == 1:
        return {}
    if isinstance(mechanism, ProductMechanism) and factor_decoders(mechanism, prior) is not None:
        return {}
    # At full rank every share is a sum of joint answers, so no further decoder is needed.
    if decoder(mechanism, shares(mechanism.answers), prior).rank == mechanism.answers:
        return {}
    names: list[tuple[str, ...]] = [(name,) for name in questions]
    names += [tuple(table)] if table is not None and 1 < len(table) < len(questions) else []
    marginals = []
    for ids in names:
        margin = Asked(tuple(questions[name] for name in ids), (), (), shares=True)
        rows = decoder(mechanism, cell_weights(part.blocks, margin), prior).rows
        marginals.append({"questions": list(ids), "decoder": _floats(rows)})
    return {"marginals": marginals}


def _factor(mechanism: Table | SetMechanism, prior: Prior) -> dict[str, Any]:
    if isinstance(mechanism, DenseMechanism | ProductMechanism):
        return _table(mechanism, prior)
    inside, outside = chances(mechanism)
    rows: Sequence[Sequence[Fraction] | None] = (
        # With equal probabilities the set does not depend on the answer, so no decoder exists.
        SetFactor(mechanism).decoder if inside != outside else [None] * mechanism.answers
    )
    return {
        "name": mechanism.kind,
        "inside": list(inside.as_integer_ratio()),
        "outside": list(outside.as_integer_ratio()),
        "design_prior": list(prior),
        "decoder": _floats(rows),
    }


def _table(mechanism: Table, prior: Prior) -> dict[str, Any]:
    if mechanism.answers * mechanism.reports > _MAX_ENTRIES:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "the mechanism's table is too large for a response: request fewer questions",
            "questions",
        )
    return {
        "name": mechanism.kind,
        "denominator": mechanism.denominator,
        "weights": list(map(list, weights_of(mechanism))),
        "design_prior": list(prior),
        "decoder": _floats(decoder(mechanism, shares(mechanism.answers), prior).rows),
    }


def _floats(rows: Sequence[Sequence[Fraction] | None]) -> list[list[float] | None]:
    # Floats suffice for estimates: no privacy decision is made from a decoder.
    return [None if row is None else list(map(float, row)) for row in rows]
