# SPDX-License-Identifier: Apache-2.0
"""What `import frankly_sdk` costs a host application, beside `import requests` and an empty Python."""

import subprocess
import sys
import time
from collections.abc import Callable

from _runner import Result, main, medians

ROUNDS = 15
LIMIT_S = 0.2


def measure() -> Result:
    """Time whole processes: what is imported first, and from where, is then the same for all."""
    trials = {
        "python": _process("pass"),
        "requests": _process("import requests"),
        "sdk": _process("import frankly_sdk"),
    }
    seconds = medians(trials, ROUNDS)
    imported = {name: seconds[name] - seconds["python"] for name in ("requests", "sdk")}
    return Result(
        "sdk",
        ratios={"import_sdk_to_requests": imported["sdk"] / imported["requests"]},
        figures={
            "python_s": seconds["python"],
            "import_requests_s": imported["requests"],
            "import_sdk_s": imported["sdk"],
        },
        limits={"import_sdk_s": LIMIT_S},
    )


def _process(code: str) -> Callable[[], float]:
    def trial() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return trial


if __name__ == "__main__":
    main(__doc__, measure)
