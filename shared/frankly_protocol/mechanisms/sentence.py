# SPDX-License-Identifier: Apache-2.0
"""What a kind says about its law and its symbols: names of texts with exact figures.

`frankly_protocol.explanation` has the texts in every language and formats the figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Sentence:
    """The name of a text in the part "explanation", and the exact figures to insert.

    numbers : whole numbers. chances : in [0, 1], shown in per cent. ratios : shown as factors,
    rounded up. lists_symbols : the chances of every symbol follow this sentence. is_draw : the
    sentence says that only some questions are drawn.
    """

    name: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    chances: Mapping[str, Fraction] = field(default_factory=dict)
    ratios: Mapping[str, Fraction] = field(default_factory=dict)
    lists_symbols: bool = False
    is_draw: bool = False


Shape = int | Sentence | tuple[int | Sentence, ...]
"""The form of a symbol: its largest number, or a sentence on its length; a tuple is a list of these."""
