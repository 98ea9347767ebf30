# SPDX-License-Identifier: Apache-2.0
"""From the priors an admin wrote to those the designer and the document use."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Prior as DocumentPrior
from frankly_protocol.blocks import Promise
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.asked import Asked
from frankly_server.design.prior import Prior
from frankly_server.design.promises import pairs
from frankly_server.surveys import truths
from frankly_server.surveys.definition import BlockDefinition, PriorDefinition

Joint = tuple[tuple[int, ...], ...]
_SMALL = frozenset("1234")


def asked_of(block: BlockDefinition, field: str) -> Asked:
    """Return what a block asks for; its prior holds whole counts, of equally likely answers if the admin gave none.

    Raises InvalidInput: prior_small_cells for counts of 1 to 4 whose data the admin has not called public, prior_sum,
    prior_value, prior_shape, secret_empty, choice_unprotected, or what else is wrong with the notions and their levels;
    `field` is the block's path.
    """
    for name, prior in _named(block):
        _require_public(prior, f"{field}.{name}.joint")
    with named(field):
        asked = Asked(_request(block))
        for x, n in enumerate(asked.prior.shares):
            if n == 0:  # the published decoder needs every answer to be possible
                words = f"answer {x} has no mass under the prior: smooth the counts, or leave the prior out"
                raise InvalidInput(Problem.PRIOR_VALUE, words, "prior.joint")
    return asked


@contextmanager
def named(field: str) -> Iterator[None]:
    """Put a block's path before the field that an error names."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.problem, error.detail, f"{field}.{error.field}" if error.field else field) from None


def _request(block: BlockDefinition) -> dict[str, Any]:
    """Return what a block asks for in the keys of `frankly design --json`."""
    secrets = _secrets(block, block.prior) if block.prior else ()
    given = block.asked(secrets) | block.own() | {"mechanism": block.mechanism}
    given["prior"] = {"joint": _rows(block.prior) if block.prior else [[1] * block.answers]}
    if block.notions:
        given["notions"] = [notion.asked(secrets) for notion in block.notions]
    if block.priors:
        given["priors"] = [{"joint": _rows(prior)} for prior in block.priors]
    if block.truths is not None:
        given["truths"] = truths.asked(block.truths)
    if block.ceiling_cap is not None:
        given["ceiling_cap"] = block.ceiling_cap
    return given


def promises_of(block: BlockDefinition, claims: Sequence[Claim]) -> tuple[Promise, ...]:
    """Return the claims with the names and sources that people read; nothing but them is published of a prior."""
    tables = _tables(block)
    found = []
    for claim in claims:
        if claim.joint is not None:
            found.append(Promise.under(claim, tables[claim.joint]))
        elif claim.notion == "rldp" and block.prior is not None:
            found.append(Promise(claim, None, block.prior.secret or block.id, block.prior.source))
        else:
            found.append(Promise(claim))
    return tuple(found)


def _tables(block: BlockDefinition) -> Mapping[Joint, DocumentPrior]:
    """Return the block's priors by the table that claims carry."""
    found = {}
    for _, given in _named(block):
        prior = Prior.from_rows(_rows(given))
        table = pairs(prior).joint if block.in_pairs else prior.joint
        found[table] = DocumentPrior(given.secret or block.id, _secrets(block, given), table, given.source)
    return found


def _named(block: BlockDefinition) -> list[tuple[str, PriorDefinition]]:
    first = [("prior", block.prior)] if block.prior else []
    return [*first, *((f"priors[{i}]", prior) for i, prior in enumerate(block.priors))]


def _secrets(block: BlockDefinition, prior: PriorDefinition) -> tuple[str, ...]:
    """Return the names of the prior's rows; one row means that the answer itself is the secret."""
    several = len(prior.joint) > 1 and prior.secrets is not None and prior.secret is not None
    return prior.secrets if several and prior.secrets else block.joint_answers


def _rows(prior: PriorDefinition) -> list[list[int | Decimal]]:
    return [[int(cell) if "." not in cell else Decimal(cell) for cell in row] for row in prior.joint]


def prior_columns(block: BlockDefinition) -> tuple[str, ...]:
    """Return the names of a prior's columns: joint answers, or, where answers are pairs (s, u), those of u."""
    if not block.in_pairs or block.prior is None:
        return block.joint_answers
    rest = product(*([choice.id for choice in question.choices] for question in block.questions[1:]))
    names = tuple("-".join(ids) for ids in rest)
    width = len(block.prior.joint[0])  # a file may cut its questions into pairs in another way
    return names if len(names) == width else tuple(str(x) for x in range(width))


def small_cells(block: BlockDefinition) -> list[tuple[str, str, str]]:
    """Return a prior's counts of 1 to 4, which could point at single people, as (secret, answer, count)."""
    rows = block.prior.joint if block.prior else ()
    if block.prior is None or any("." in cell for row in rows for cell in row):
        return []  # shares
    secrets = block.prior.secrets or ("answer",) * len(rows)
    answers = prior_columns(block)
    return [(s, answers[x], n) for s, row in zip(secrets, rows, strict=True) for x, n in enumerate(row) if n in _SMALL]


def _require_public(prior: PriorDefinition, field: str) -> None:
    if prior.public or any("." in cell for row in prior.joint for cell in row):
        return
    for s, row in enumerate(prior.joint):
        for x, cell in enumerate(row):
            if cell in _SMALL:
                words = (
                    "counts of 1 to 4 could point at single people, and the prior will be published; "
                    "smooth it, or write public: true if the data are public already"
                )
                raise InvalidInput(Problem.PRIOR_SMALL_CELLS, words, f"{field}[{s}][{x}]")
