# SPDX-License-Identifier: Apache-2.0
"""Tests of the designer as on other processors: python -m tools.processors [PYTEST ARGUMENT …].

Runs them once for each setting: numpy without the optional instructions of this processor, OpenBLAS
with the kernels of others, and solvers that return other last digits (docs/maths/rounding.md,
claim 9). Exit status 1 if a test fails under any of them. The default paths are PATHS.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
PATHS: Final = ("tests/frankly_design", "tests/papers")
KERNELS: Final = ("Prescott", "Haswell", "Zen", "SkylakeX")
"""Kernels of OpenBLAS for x86-64. OpenBLAS replaces one that this processor cannot run."""
SEEDS: Final = (1, 2)


def settings() -> dict[str, tuple[dict[str, str], list[str]]]:
    """Return environment variables and pytest options by the name of the setting."""
    config = np.show_config(mode="dicts") or {}
    features = config.get("SIMD Extensions", {}).get("found", [])
    variables = {
        "numpy without optional instructions": {"NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    }
    variables |= {f"OpenBLAS for {name}": {"OPENBLAS_CORETYPE": name} for name in KERNELS}
    return {name: (changed, []) for name, changed in variables.items()} | {
        f"other last digits, seed {seed}": ({}, ["-p", "tests.perturbation", f"--perturb={seed}"])
        for seed in SEEDS
    }


def main(arguments: Sequence[str]) -> int:
    """Run the tests under each setting, and list those that fail; return 1 if any does."""
    failed = []
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count() or 1)]
    environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    for name, (variables, options) in settings().items():
        sys.stdout.write(f"\n{name} {variables or options}\n")
        sys.stdout.flush()
        run = [*command, *options, *(arguments or PATHS)]
        if subprocess.run(run, cwd=ROOT, env=environment | variables, check=False).returncode:  # noqa: S603
            failed.append(name)
    sys.stdout.write(f"failed: {'; '.join(failed)}\n" if failed else "all settings passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
