# SPDX-License-Identifier: Apache-2.0
"""Invite codes: 16 characters that people can type, each standing for one invite token (docs/protocol.md §10).

A code has 15 random characters of Crockford's base-32 alphabet, 75 bits, and a check character.
With the check character c₁₅, Σ αⁱcᵢ = 0 over GF(32), where α is a root of x⁵ + x² + 1. The powers
α⁰ … α¹⁵ are distinct and none is zero, so every wrong character and every swap of two different
characters is noticed; of other mistakes 31 in 32 are.
"""

import hashlib
import re
import secrets
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: without I, L, O and U."""
CODE_BITS: Final = 75
_LENGTH: Final = 16
_GROUP: Final = 4
_CONTEXT: Final = b"frankly.invite/1\x00"
_POLYNOMIAL: Final = 0b100101  # x⁵ + x² + 1
# Separators that people type, and letters that look like digits.
_SEPARATORS: Final = re.compile(r"[\s–-]+")
_LIKE_DIGITS: Final = str.maketrans("ILO", "110")


def new_code() -> str:
    """Return a random code in four groups, such as ``7Q2M-…``. Raises OSError without randomness."""
    number = secrets.randbits(CODE_BITS)
    characters = [(number >> shift) & 31 for shift in range(0, CODE_BITS, 5)]
    return _written([*characters, _check(characters)])


def is_like_code(text: str) -> bool:
    """Return True if a text has the length of a code without its separators; no token has it."""
    return len(_SEPARATORS.sub("", text)) == _LENGTH


def token_of_code(text: str, survey: str) -> bytes:
    """Return the 32 bytes of the invite token that a code stands for in a survey.

    Letters may be lower case, separators are ignored, and I, L and O are read as 1, 1 and 0. survey
    : 32 hex digits. Raises InvalidInput(token_invalid) for a mistyped code.
    """
    plain = _SEPARATORS.sub("", text).upper().translate(_LIKE_DIGITS)
    digits = [ALPHABET.find(character) for character in plain]
    if len(digits) != _LENGTH or -1 in digits or _check(digits[:-1]) != digits[-1]:
        raise InvalidInput(
            Problem.TOKEN_INVALID,
            "this code has a typing mistake: compare it with your invitation, and type it again",
            "token",
        )
    return hashlib.sha256(_CONTEXT + bytes.fromhex(survey) + plain.encode("ascii")).digest()


def _written(digits: list[int]) -> str:
    text = "".join(ALPHABET[digit] for digit in digits)
    return "-".join(text[i : i + _GROUP] for i in range(0, _LENGTH, _GROUP))


def _check(digits: list[int]) -> int:
    """Return the check character: by Horner's scheme, the value that makes the weighted sum zero."""
    total = 0
    for digit in digits:
        total = _times_root(total) ^ digit
    return _times_root(total)


def _times_root(a: int) -> int:
    """Return the product of an element of GF(32) and the root α."""
    return (a << 1) ^ (_POLYNOMIAL if a & 16 else 0)
