# SPDX-License-Identifier: Apache-2.0
"""The `Fit` of every question of a block (`frankly_protocol.mechanisms.fit`)."""

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms.fit import Fit


def fits(block: Block) -> list[Fit | None]:
    """Return the Fit of every question of a block; None where it would take too long to compute."""
    return block.mechanism.fits([len(question.choices) for question in block.questions])
