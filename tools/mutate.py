# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the estimator: run the nearest tests against each stored mutant and report the survivors.

.venv/bin/python -m tools.mutate                       # all of `tools.mutants`, one process, tens of minutes
.venv/bin/python -m tools.mutate --module chernoff     # mutants of one module; may be repeated
.venv/bin/python -m tools.mutate --most 24 --seed 7    # a random sample: one of each module in turn

Exit status: 1 if a mutant survives that `mutants.EQUIVALENT` does not explain, otherwise 0.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from hashlib import sha256
from pathlib import Path

from tools.mutants import EQUIVALENT, MUTANTS, NEAREST

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("frankly_server")
ESTIMATE = PACKAGE / "estimate"
TESTS = Path("tests/frankly_server/estimate")
TIMEOUT_S = 600
_PASSED, _FAILED = 0, (1, 2)
"""Exit codes of pytest; 2 if a test file cannot be imported because the mutant is invalid."""


def ordered(seed: int) -> list[tuple[str, int]]:
    """Return every mutant as (module, place), one of each module in turn, in the seed's order."""

    def key(module: str, place: int) -> bytes:
        return sha256(f"{seed} {module} {place}".encode()).digest()

    places = {
        module: sorted(range(len(MUTANTS[module])), key=partial(key, module)) for module in MUTANTS
    }
    longest = max(map(len, places.values()))
    return [
        (module, positions[i])
        for i in range(longest)
        for module, positions in places.items()
        if i < len(positions)
    ]


def mutated(module: str, place: int) -> str:
    """Return a module's source with one mutation. Raises ValueError unless its text occurs once."""
    source = (ROOT / "server" / ESTIMATE / f"{module}.py").read_text()
    before, after = MUTANTS[module][place]
    if source.count(before) != 1:
        raise ValueError(f"{module} {place}: the text occurs {source.count(before)} times")
    return source.replace(before, after)


def passes(copy: Path, module: str) -> bool:
    """Return True if a module's nearest tests pass with the package in `copy` within TIMEOUT_S.

    Raises RuntimeError if pytest itself fails.
    """
    tests = [str(TESTS / f"{name}.py") for name in NEAREST[module].split()]
    sources = os.pathsep.join(
        map(str, (copy, ROOT / "shared", ROOT / "client_sdk", ROOT / "analyst"))
    )
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        process = subprocess.run(  # noqa: S603 - our own tests
            command, cwd=ROOT, check=False, capture_output=True, timeout=TIMEOUT_S,
            env={**os.environ, "PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if process.returncode not in (_PASSED, *_FAILED):
        raise RuntimeError(process.stdout.decode()[-2000:])
    return process.returncode == _PASSED


def survives(copy: Path, module: str, place: int) -> bool:
    """Return True if the nearest tests pass with the mutant; the copy is restored afterwards."""
    path = copy / ESTIMATE / f"{module}.py"
    original = path.read_text()
    path.write_text(mutated(module, place))
    try:
        return passes(copy, module)
    finally:
        path.write_text(original)


def main() -> None:
    """Read the command line, run, print a line per mutant and a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seed", type=int, default=19, help="seed of the order, and so of the sample of --most"
    )
    parser.add_argument("--most", type=int, default=None, help="largest number of mutants")
    parser.add_argument(
        "--module", choices=sorted(MUTANTS), action="append", help="test the mutants of this module"
    )
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in ordered(options.seed)
        if options.module is None or mutant[0] in options.module
    ]
    chosen = chosen[: options.most]
    survivors: list[tuple[str, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        # Only the package is copied; the repository's tests import it from the copy.
        copy = Path(folder)
        shutil.copytree(ROOT / "server" / PACKAGE, copy / PACKAGE)
        for module in sorted({module for module, _ in chosen}):
            if not passes(copy, module):
                sys.exit(f"the tests of {module} fail without a mutant")
        for module, place in chosen:
            before, after = MUTANTS[module][place]
            is_survivor = survives(copy, module, place)
            verdict = (
                f"SURVIVES: {EQUIVALENT.get((module, place), 'not explained')}"
                if is_survivor
                else "found"
            )
            sys.stdout.write(
                f"{module} {place} {verdict}\n" + f"    {before!r} -> {after!r}\n" * is_survivor
            )
            sys.stdout.flush()
            survivors += [(module, place)] * is_survivor
    explained = sum(mutant in EQUIVALENT for mutant in survivors)
    sys.stdout.write(
        f"{len(chosen)} mutants: {len(chosen) - len(survivors)} found, {explained} explained, "
    )
    sys.stdout.write(f"{len(survivors) - explained} not explained\n")
    sys.exit(1 if len(survivors) > explained else 0)


if __name__ == "__main__":
    main()
