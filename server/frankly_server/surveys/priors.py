# SPDX-License-Identifier: Apache-2.0
"""From the prior an admin wrote to the one the designer and the document use."""

from decimal import Decimal

from frankly_protocol.blocks import Prior as DocumentPrior
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.prior import Prior
from frankly_server.surveys.definition import PRIOR_BASED, BlockDefinition, PriorDefinition

_SMALL = frozenset("1234")


def prior_of(block: BlockDefinition, field: str) -> Prior:
    """Return the block's prior as whole counts; equally likely answers if the admin gave none.

    Raises InvalidInput: prior_sum, prior_value, prior_shape, secret_empty, choice_unprotected, or prior_small_cells for
    counts of 1 to 4 whose data the admin has not called public; `field` is the block's path.
    """
    if block.prior is None:
        return Prior.from_rows([[1] * block.answers])
    _require_public(block.prior, field)
    path = f"{field}.prior.joint"
    rows = [[int(cell) if "." not in cell else Decimal(cell) for cell in row] for row in block.prior.joint]
    prior = Prior.from_rows(rows, path)
    if block.notion in PRIOR_BASED:
        prior.require_protection(path)
    for x, n in enumerate(prior.shares):
        if n == 0:  # the published decoder needs every answer to be possible
            words = f"answer {x} has no mass under the prior: smooth the counts, or leave the prior out"
            raise InvalidInput(Problem.PRIOR_VALUE, words, path)
    return prior


def document_prior(block: BlockDefinition, prior: Prior) -> DocumentPrior | None:
    """Return the prior to publish: for prior-based notions only, since nothing else rests on it.

    One row means that the answer itself is the secret, whose values are then the joint answers.
    """
    if block.notion not in PRIOR_BASED or block.prior is None:
        return None
    given = block.prior
    if given.secrets is not None and given.secret is not None and len(given.joint) > 1:
        return DocumentPrior(given.secret, given.secrets, prior.joint, given.source)
    return DocumentPrior(given.secret or block.id, block.joint_answers, prior.joint, given.source)


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
                raise InvalidInput(Problem.PRIOR_SMALL_CELLS, words, f"{field}.prior.joint[{s}][{x}]")
