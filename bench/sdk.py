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
    codes = {"python": "pass", "requests": "import requests", "sdk": "import frankly_sdk"}
    seconds = medians({name: _process(code) for name, code in codes.items()}, ROUNDS)
    requests_s, sdk_s = (seconds[name] - seconds["python"] for name in ("requests", "sdk"))
    figures = {
        "python_s": seconds["python"],
        "import_requests_s": requests_s,
        "import_sdk_s": sdk_s,
        "ratio_import_requests": sdk_s / requests_s,
        "ratio_import_python": sdk_s / seconds["python"],
    }
    return Result("sdk", figures, limits={"import_sdk_s": LIMIT_S})


def _process(code: str) -> Callable[[], float]:
    def trial() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return trial


if __name__ == "__main__":
    main(__doc__, measure)
