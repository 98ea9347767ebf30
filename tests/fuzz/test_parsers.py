# SPDX-License-Identifier: Apache-2.0
"""Parsers of bytes from the network, which return or raise a typed error within a second for any bytes."""

import time

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz.mutations import hostile
from tests.fuzz.parsers import PARSERS, Parser

HANG_S = 1.0
FULL_CPU_S = 600.0
EXAMPLES = 60  # --full uses ten minutes of CPU time
PARTS = 4  # short tests, because a test of some minutes would look like one that hangs


def check(parser: Parser, data: bytes, hang_s: float = HANG_S) -> None:
    """Parse these bytes; any error that is not one of the parser's `errors` fails the test."""
    before = time.thread_time()
    try:
        parser.run(data)
    except parser.errors as error:
        detail = getattr(error, "detail", None) or str(error)
        assert detail
        assert len(detail) < 2000, "the detail must not echo the input"
    spent = time.thread_time() - before
    assert spent < hang_s, f"{spent:.2f} s of CPU for {len(data)} bytes"


def fuzz(name: str, examples: int, number: int = 0) -> None:
    """Run this many examples with one parser; `number` is the seed."""
    parser = PARSERS[name]

    @seed(number)
    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(hostile(parser.seeds))
    def run(data: bytes) -> None:
        check(parser, data)

    run()


@pytest.mark.parametrize("name", PARSERS)
def test_honest_bytes_are_read_or_refused_by_type(name: str) -> None:
    for data in PARSERS[name].seeds:
        check(PARSERS[name], data)


@pytest.mark.parametrize("name", PARSERS)
def test_no_bytes_crash_or_hang_a_parser(name: str) -> None:
    fuzz(name, EXAMPLES)


@pytest.mark.full_only
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", PARSERS)
def test_no_bytes_crash_or_hang_a_parser_for_ten_minutes_of_cpu(name: str, part: int) -> None:
    started, number = time.process_time(), 1000 * part
    while time.process_time() - started < FULL_CPU_S / len(PARSERS) / PARTS:
        number += 1
        fuzz(name, 300, number)


def test_the_check_fails_for_crashes_and_hangs() -> None:
    def crash(_data: bytes) -> None:
        raise KeyError("x")

    def spin(_data: bytes) -> None:
        end = time.thread_time() + 0.03
        while time.thread_time() < end:
            pass

    with pytest.raises(KeyError):
        check(Parser(crash, (b"",)), b"")
    with pytest.raises(AssertionError, match="CPU"):
        check(Parser(spin, (b"",)), b"", hang_s=0.02)
