# SPDX-License-Identifier: Apache-2.0
"""From the joint answers of a block to the shares of one of its questions."""

from math import prod
from typing import Literal

from frankly_protocol.blocks import Block, Question


def shares_of(block: Block, question: Question) -> Literal["shares"] | list[list[int]]:
    """Return the targets that sum a block's joint answers to one question's choices (row: choice, column: answer).

    Joint answers are in row-major order, the last question fastest. A block of one question needs no summing.
    """
    if len(block.questions) == 1:
        return "shares"
    position = block.questions.index(question)
    sizes = [len(each.choices) for each in block.questions]
    faster = prod(sizes[position + 1 :])
    return [
        [int(answer // faster % sizes[position] == choice) for answer in range(prod(sizes))]
        for choice in range(sizes[position])
    ]
