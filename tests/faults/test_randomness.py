# SPDX-License-Identifier: Apache-2.0
"""Randomness of reports: forks never repeat a draw, draws follow the published integers, and
nothing is sent without a random source."""

import os
import random
import struct
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import RandomnessError
from frankly_sdk.testing import FakeServer, make_survey

DRAWS = 1000


def test_forked_children_never_repeat_a_draw(full: bool) -> None:
    """Each child draws 1,000 numbers of 48 bits; for 200 children, the probability of a collision is 7e-5."""
    children = 200 if full else 16
    all_draws: list[int] = []
    for _ in range(children):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, _draws())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            all_draws += struct.unpack(f"{DRAWS}Q", file.read())
        os.wait()
    assert len(set(all_draws)) == len(all_draws) == children * DRAWS
    assert max(all_draws) < 2**48


def _draws() -> bytes:
    """Return the bits that a mechanism receives from the SDK's default source."""
    from frankly_sdk._seams import Seams

    source = Seams().randbits
    return struct.pack(f"{DRAWS}Q", *(source(48) for _ in range(DRAWS)))


BROKEN = """
import os, sys
def broken(size): raise OSError("no entropy")
os.urandom = broken  # before anything of ours, or of the standard library's random, is loaded
from frankly_sdk import RandomnessError
from frankly_sdk.testing import Authority, FakeServer, make_survey
server = FakeServer(make_survey({"smokes": ["no", "yes"]}, survey_id="ab" * 16))
with server.open(sys.argv[1]) as client:
    try:
        client.answer({"smokes": "yes"})
    except RandomnessError:
        print(sum(request.body is not None for request in server.requests), len(client._core.parts.store.outbox()))
"""


def test_a_failing_urandom_sends_nothing(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path / "s.db")], capture_output=True, text=True
    )
    assert completed.stdout == "0 0\n", completed.stderr


def test_randomness_that_fails_at_any_draw_seals_nothing(tmp_path: Path) -> None:
    server = FakeServer(make_survey({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"]}))
    for working in range(4):  # three symbols and the report's id
        remaining = iter(range(working))

        def source(bits: int, remaining=remaining) -> int:  # type: ignore[no-untyped-def]
            if next(remaining, None) is None:
                raise OSError
            return 0

        with (
            server.open(tmp_path / f"{working}.db", randbits=source) as client,
            pytest.raises(RandomnessError),
        ):
            client.answer({"a": "0", "b": "1", "c": "0"})
        with server.open(tmp_path / f"{working}.db") as client:
            assert client.flush() == []
    assert [request for request in server.requests if request.body is not None] == []


def random_weights(
    bits: int, answers: int, reports: int, generator: random.Random
) -> tuple[tuple[int, ...], ...]:
    """Draw rows of integers that sum to 2^bits; some integers are zero, some are tiny."""
    rows = []
    for _ in range(answers):
        cuts = sorted(
            generator.choice((generator.randrange(2**bits + 1), generator.randrange(4)))
            for _ in range(reports - 1)
        )
        rows.append(tuple(b - a for a, b in zip([0, *cuts], [*cuts, 2**bits], strict=True)))
    return tuple(rows)


def documents(count: int, bits: int, largest: int) -> list[DenseMechanism]:
    generator, tables = random.Random(6), list[DenseMechanism]()
    while len(tables) < count:
        weights = random_weights(
            bits, generator.randint(2, largest), generator.randint(2, largest), generator
        )
        if all(map(any, zip(*weights, strict=True))):  # no column of zeros
            tables.append(DenseMechanism(bits, weights))
    return tables


def test_every_draw_of_16_bits_follows_the_published_integers(full: bool) -> None:
    """If each u is used once, the count of each symbol equals its weight for each truth."""
    for mechanism in documents(200 if full else 3, 16, 4 if full else 2):
        for truth, row in enumerate(mechanism.weights):
            drawn = Counter(mechanism.sample(truth, lambda _bits, u=u: u) for u in range(2**16))
            assert [drawn[y] for y in range(len(row))] == list(row)


def test_every_draw_of_8_bits_over_200_documents() -> None:
    for mechanism in documents(200, 8, 6):
        for truth, row in enumerate(mechanism.weights):
            drawn = Counter(mechanism.sample(truth, lambda _bits, u=u: u) for u in range(2**8))
            assert [drawn[y] for y in range(len(row))] == list(row)


def test_the_edges_of_48_bits(full: bool) -> None:
    """The symbol is a step function of u, so the values on both sides of each threshold determine
    all 2^48 draws."""
    for mechanism in documents(2000 if full else 200, 48, 16):
        for truth, row in enumerate(mechanism.weights):
            ends = list(accumulate(row))
            edges = {0, 2**48 - 1, *(u for end in ends for u in (end - 1, end) if 0 <= u < 2**48)}
            for u in edges:
                assert mechanism.sample(truth, lambda _bits, u=u: u) == bisect_right(ends, u)
