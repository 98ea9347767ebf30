# SPDX-License-Identifier: Apache-2.0
"""Threads of linear algebra: no additional threads start, unless the environment sets their number."""

import os
import subprocess
import sys

import pytest

CODE = """
import frankly_server, os, numpy, scipy.linalg
A = numpy.eye(600) + 1e-3 * (numpy.ones((600, 600)) @ numpy.ones((600, 600)))
scipy.linalg.cho_factor(A)
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: one thread in any case")
@pytest.mark.parametrize(("given", "more"), [({}, False), ({"OPENBLAS_NUM_THREADS": "2"}, True)])
def test_linear_algebra_runs_in_one_thread_by_default(given: dict[str, str], more: bool) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
    }
    threads = subprocess.run(
        [sys.executable, "-c", CODE],
        env=environment | given,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (int(threads) > 1) == more
