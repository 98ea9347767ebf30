# SPDX-License-Identifier: Apache-2.0
"""Timing of our SDK: randomising one answer, and a report from opening the survey to erasure."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from frankly_protocol.audit import level_for
from frankly_protocol.mechanisms import DenseMechanism, UnaryMechanism
from frankly_sdk import Policy
from frankly_sdk.testing import Authority, FakeClock, FakeServer, make_survey

BITS, TRUTH = 48, 1


def samplers(k: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield GRR (as a table) and OUE at ε = 1, drawn from the operating system's random source."""
    dense = make_survey({"q": [f"c{i}" for i in range(k)]}, "1").blocks[0].mechanism
    p, q = level_for(Fraction(1))
    unary = UnaryMechanism(BITS, k, 1 << (BITS - 1), -(-(q << BITS) // (p + q)))
    if not isinstance(dense, DenseMechanism):
        raise TypeError("make_survey did not return a table")
    yield "grr", lambda: dense.sample(TRUTH)
    yield "unary", lambda: unary.sample(TRUTH)


def reports(rounds: int) -> dict[str, list[float]]:
    """Time a report on disk: first open with every check, later open, seal-send-erase, batch."""
    clock = FakeClock()
    authority, document = (
        Authority(clock),
        make_survey({"q": [f"c{i}" for i in range(16)]}, "1", clock=clock),
    )
    samples: dict[str, list[float]] = {
        "open_s": [],
        "reopen_s": [],
        "seal_send_erase_s": [],
        "batch_seal_s": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        for i in range(rounds):
            server = FakeServer(document, FakeClock(), authority)
            store = Path(folder) / f"{i}.db"
            with _timed(samples["open_s"]):
                server.open(store, spread_s=0).close()
            with _timed(samples["reopen_s"]):
                client = server.open(store, spread_s=0, policy=Policy(cap="1"))
            with _timed(samples["seal_send_erase_s"]):
                client.answer({"q": "c3"})
            with _timed(batch := list[float]()):
                drawn = list(client.randomise_many((f"p{j}", {"q": "c3"}, {}) for j in range(500)))
            samples["batch_seal_s"].append(batch[0] / len(drawn))
            client.close()
    return samples


@contextlib.contextmanager
def _timed(into: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    into.append(time.perf_counter() - start)
