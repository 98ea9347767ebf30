# SPDX-License-Identifier: Apache-2.0
"""The measured curves: CPU seconds of designs, verifications and estimates; intake by processes.

CPU time is measured instead of elapsed time, because other work on the machine hardly affects it.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from _design import priors
from _design.designs import designed, request
from _intake import load
from _intake.served import Served, ours, twin
from frankly_design.estimate import estimate
from frankly_design.notions import promises
from frankly_protocol.audit import Claim, worst
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

D = 1 << 48
DESIGN_LIMIT_S = 600.0
MOST_CROSSED = 16


@dataclass(frozen=True)
class Point:
    """One measurement: `y` at `x` on a curve of a panel."""

    panel: str
    curve: str
    x: float
    y: float


def designs(answers: Sequence[int], secrets: Sequence[int], rounds: int) -> Iterator[Point]:
    """Yield median times of LIP optima at ε = 1 over random priors, by answers; a curve per c."""
    for c in secrets:
        for a in answers:
            requests = [
                partial(
                    designed,
                    request(p, [promises.promise("lip", p, Fraction(1))], "information"),
                    DESIGN_LIMIT_S,
                )
                for p in islice(priors.dirichlet(c, a, seed=17), rounds)
            ]
            yield Point("design", f"c = {c} secrets", a, statistics.median(map(_cpu_s, requests)))


def verifications(sizes: Sequence[int], rounds: int) -> Iterator[Point]:
    """Yield the time of exact verification of a k×k table, for LDP and for LIP with k secrets."""
    for k in sizes:
        joint = tuple(tuple(1 + (31 * s + 17 * x) % 101 for x in range(k)) for s in range(k))
        claims = {"LDP": Claim("ldp", (3, 1)), "LIP, k secrets": Claim("lip", (3, 1), joint)}
        mechanism = table(k)
        for name, claim in claims.items():
            yield Point("verify", name, k, _median(lambda: worst(mechanism, claim), rounds))  # noqa: B023 - called here


def estimates(numbers: Sequence[int], sizes: Sequence[int], rounds: int) -> Iterator[Point]:
    """Yield the time of an estimate from counts, by the reports n and by a question's answers k."""
    crossed = ProductMechanism((table(16), table(16)))
    for n in numbers:
        yield Point("estimate_n", "5 shares", n, _median(_estimated(table(5), n), rounds))
        yield Point("estimate_n", "16 × 16 cross-tab", n, _median(_estimated(crossed, n), rounds))
    for k in sizes:
        yield Point("estimate_k", "k shares", k, _median(_estimated(table(k), 10_000), rounds))
    for k in (k for k in sizes if k <= MOST_CROSSED):
        crossed = ProductMechanism((table(k), table(k)))
        yield Point(
            "estimate_k", "k × k cross-tab", k, _median(_estimated(crossed, 10_000), rounds)
        )


def processes(url: Callable[[], str], counts: Sequence[int], reports: int) -> Iterator[Point]:
    """Yield reports stored per second by several servers on one database, 8 connections each."""
    for count in counts:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            first = stack.enter_context(ours(Path(folder), url()))
            every = [
                first,
                *(stack.enter_context(twin(Path(folder), first)) for _ in range(count - 1)),
            ]
            yield Point("intake", "single reports", count, _together(every, reports))


def _together(servers: Sequence[Served], reports: int) -> float:
    requests = [load.singles(servers[0].document, reports) for _ in servers]
    threads = [
        threading.Thread(target=load.run, args=(server, request, 8))
        for server, request in zip(servers, requests, strict=True)
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return reports * len(servers) / (time.perf_counter() - start)


def table(k: int) -> DenseMechanism:
    """Return randomised response: the truth is 3 times as likely as each other answer."""
    off_diagonal = D // (k + 2)
    diagonal = D - (k - 1) * off_diagonal
    return DenseMechanism(
        48, tuple(tuple(diagonal if x == y else off_diagonal for y in range(k)) for x in range(k))
    )


def _estimated(mechanism: DenseMechanism | ProductMechanism, n: int) -> Callable[[], object]:
    """Return a trial that estimates shares from counts of n reports with uniform symbols."""
    k = mechanism.reports
    counts = [int(c) for c in np.random.default_rng(k).multinomial(n, [1 / k] * k)]
    return lambda: estimate(mechanism, counts)


def _median(trial: Callable[[], object], rounds: int) -> float:
    trial()
    return statistics.median(_cpu_s(trial) for _ in range(rounds))


def _cpu_s(trial: Callable[[], object]) -> float:
    start = time.process_time()
    trial()
    return time.process_time() - start
