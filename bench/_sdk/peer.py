# SPDX-License-Identifier: Apache-2.0
"""Timing of randomising one answer with a peer library, in its environment; prints seconds.

python peer.py NAME CALLS ROUNDS [SIZES…]
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator

EPSILON, TRUTH = 1.0, 1
Call = Callable[[], object]


def pure_ldp(k: int) -> Iterator[tuple[str, Call]]:
    """Return pure-ldp's calls, which use Python's own generator and floats."""
    oracles = importlib.import_module("pure_ldp.frequency_oracles")
    grr, unary = oracles.DEClient(EPSILON, k), oracles.UEClient(EPSILON, k, use_oue=True)
    yield "grr", lambda: grr.privatise(TRUTH)
    yield "unary", lambda: unary.privatise(TRUTH)


def multi_freq_ldpy(k: int) -> Iterator[tuple[str, Call]]:
    """Return multi-freq-ldpy's calls: compiled, with NumPy's generator and floats."""
    grr = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
    unary = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.UE").UE_Client
    yield "grr", lambda: grr(TRUTH, k, EPSILON)
    yield "unary", lambda: unary(TRUTH, k, EPSILON, True)


def opendp(k: int) -> Iterator[tuple[str, Call]]:
    """Return OpenDP's calls (Rust, secure random source); bit vectors round k up to whole bytes."""
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    grr = dp.m.make_randomized_response(list(range(k)), prob=0.5)
    vectors = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5
    )
    truth = bytes([1 << TRUTH]) + bytes((k - 1) // 8)
    yield "grr", lambda: grr(TRUTH)
    yield "unary", lambda: vectors(truth)


PEERS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy, "opendp": opendp}


def per_call(call: Call, calls: int, rounds: int) -> list[float]:
    """Return the CPU seconds of a call in each round; a first round warms caches and compilers.

    CPU time is used because the libraries are timed one after another: a busy moment of the machine
    must not slow one of them down.
    """
    samples = []
    for _ in range(rounds + 1):
        start = time.process_time()
        for _ in range(calls):
            call()
        samples.append((time.process_time() - start) / calls)
    return samples[1:]


def main(arguments: list[str]) -> None:
    """Time both families at each alphabet size."""
    name, calls, rounds, *sizes = arguments
    results = {}
    for k in map(int, sizes):
        for family, call in PEERS[name](k):
            results[f"{family}_{k}"] = per_call(call, int(calls), int(rounds))
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
