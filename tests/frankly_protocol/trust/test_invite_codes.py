# SPDX-License-Identifier: Apache-2.0
"""Invite codes: every single mistake is noticed, and each code stands for one token of one survey."""

import hashlib
from itertools import combinations

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.invite_codes import ALPHABET, is_like_code, new_code, token_of_code

SURVEY = "ab" * 16
# Made by hand: fifteen zeros have the check character 0; a single 1 in the last place has α = 2.
KNOWN = ["0000-0000-0000-0000", "0000-0000-0000-0012"]


def is_accepted(text: str) -> bool:
    try:
        token_of_code(text, SURVEY)
    except InvalidInput as refused:
        assert (refused.problem, refused.field) == (Problem.TOKEN_INVALID, "token")
        return False
    return True


@pytest.mark.parametrize("code", KNOWN)
def test_known_codes(code: str) -> None:
    plain = code.replace("-", "")
    expected = hashlib.sha256(b"frankly.invite/1\0" + bytes.fromhex(SURVEY) + plain.encode())
    assert token_of_code(code, SURVEY) == expected.digest()


def test_a_code_is_random_and_has_a_check_character() -> None:
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    assert all(map(is_accepted, codes))
    assert all(is_like_code(code) and len(code) == 19 for code in codes)
    # Every character takes every value in about 31 of 1,000 codes.
    for place in range(16):
        seen = {code.replace("-", "")[place] for code in codes}
        assert len(seen) >= 28


def test_every_wrong_character_and_every_swap_is_noticed() -> None:
    code = new_code().replace("-", "")
    for place in range(16):
        for character in set(ALPHABET) - {code[place]}:
            assert not is_accepted(code[:place] + character + code[place + 1 :])
    for first, second in combinations(range(16), 2):
        swapped = list(code)
        swapped[first], swapped[second] = code[second], code[first]
        assert is_accepted("".join(swapped)) == (code[first] == code[second])


def test_spellings_of_one_code() -> None:
    code = "0000-0000-0000-0012"
    spellings = [
        "0000000000000012",
        "0000 0000 0000 0012",
        "oooo-OOOO-0000-00i2",
        " 0000–0000–0000–00L2 ",
    ]
    tokens = {token_of_code(text, SURVEY) for text in (code, *spellings)}
    assert len(tokens) == 1
    assert token_of_code(code, "cd" * 16) not in tokens


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0000-0000-0000-000",
        "0000-0000-0000-00122",
        "0000-0000-0000-001U",
        "０000-0000-0000-0012",
        "0000-0000-0000-001\0",
    ],
)
def test_other_texts_are_no_codes(text: str) -> None:
    assert not is_accepted(text)


def test_no_token_looks_like_a_code() -> None:
    assert not is_like_code("A" * 43)
