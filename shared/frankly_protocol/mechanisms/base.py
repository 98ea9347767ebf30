# SPDX-License-Identifier: Apache-2.0
"""Base of the mechanism kinds: limits, random bits without fallback, and sets as symbols.

A set of answers is a bit mask in memory (bit x represents answer x) and hex of fixed length in
JSON.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput, RandomnessError
from frankly_protocol.problems import Problem

MIN_BITS, MAX_BITS = 4, 48
MAX_ANSWERS = 256
"""Largest number of rows of a table."""
MAX_SET_ANSWERS = 1000
"""Largest number of answers of a unary, subset or product mechanism, and of choices of a question."""
MAX_REPORTS = 4096
"""Largest number of reports of a table, and of any mechanism whose reports are to be listed."""

Symbol = int | tuple[int, ...]
RandomBits = Callable[[int], int]
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a kind says: the name of a text in the part "explanation", and the exact figures to insert.

    `frankly_protocol.explanation` has the texts in every language and formats the figures.

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


def invalid(detail: str, field: str) -> InvalidInput:
    """Return the error for parameters that do not define a mechanism."""
    return InvalidInput(Problem.WEIGHTS_INVALID, detail, field)


def unknown(detail: str, field: str) -> InvalidInput:
    """Return the error for a symbol that a mechanism never sends; the detail must not repeat it."""
    return InvalidInput(Problem.SYMBOL_UNKNOWN, detail, field)


def require_whole(value: object, low: int, high: int, field: str) -> None:
    """Raise InvalidInput(weights_invalid) unless `value` is a whole number in [low, high].

    A boolean is refused, although Python counts it as an integer.
    """
    if type(value) is not int or not low <= value <= high:
        raise invalid(f"{field} must be a whole number from {low} to {high}", field)


def require_keys(data: object, keys: tuple[str, ...], field: str) -> Mapping[str, Any]:
    """Return `data` if it is an object with exactly these keys.

    Raises InvalidInput(weights_invalid) otherwise, naming the key.
    """
    if not isinstance(data, Mapping):
        raise invalid("expected an object of parameters", field)
    for key in sorted(set(map(str, data)) ^ set(keys)):
        is_expected = key in keys
        raise invalid(
            "this parameter is missing" if is_expected else "the kind has no such parameter",
            f"{field}.{key}",
        )
    return data


def draw(bits: int, randbits: RandomBits) -> int:
    """Return `bits` random bits.

    There is no fallback: raises RandomnessError if the operating system provides none.
    """
    try:
        return randbits(bits)
    # os.urandom raises NotImplementedError on systems without a random source.
    except (OSError, NotImplementedError):
        raise RandomnessError from None


def draw_below(n: int, randbits: RandomBits) -> int:
    """Return an exactly uniform number on 0 … n − 1 by rejection sampling.

    On average less than one draw is rejected. The number of rejected draws depends only on the
    random bits, never on an answer.
    """
    # Reduction modulo n would be simpler but would favour small numbers.
    bits = (n - 1).bit_length()
    while True:
        u = draw(bits, randbits) if bits else 0
        if u < n:
            return u


def mask_json(mask: int, answers: int) -> str:
    """Return a set of answers as lower-case hex, ⌈answers/4⌉ digits: one length for every set."""
    return f"{mask:0{-(-answers // 4)}x}"


def mask_of(value: object, answers: int, field: str) -> int:
    """Read a set of answers.

    Raises InvalidInput: y_type if the form is wrong, symbol_unknown for answers that do not exist.
    """
    digits = -(-answers // 4)
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise InvalidInput(
            Problem.Y_TYPE, f"a symbol of this block is {digits} lower-case hex digits", field
        )
    mask = int(value, 16)
    # The highest hex digit has room for up to three answers that do not exist.
    if mask >> answers:
        raise unknown(
            f"a symbol of this block is a set of {answers} answers: no higher bit may be set", field
        )
    return mask
