# SPDX-License-Identifier: Apache-2.0
"""Recorded server responses, which the tests of the R package read from files.

After a change of the API, `python -m tests.frankly_analyst_r.site` records the responses again.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.frankly_analyst.desk import filled
from tests.frankly_server.web.site import Site

PACKAGE: Final = Path(__file__).resolve().parents[2] / "analyst" / "r"
RECORDED: Final = PACKAGE / "tests" / "testthat" / "recorded"
QUERIES: Final = {
    "shares": "",
    "by_region": "?by=region",
    "crosstab": '?targets=["smokes","drinks"]',
}
REPORTS: Final = 240


def portable(text: str) -> Any:
    """Return JSON without ids and digests, which differ between runs."""
    return json.loads(re.sub(r"[0-9a-f]{32,}", "0" * 8, text))


def responses(site: Site) -> dict[str, Any]:
    """Return the responses that the current server sends."""
    return {name: portable(site.estimates(query).text) for name, query in QUERIES.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        recorded = responses(filled(Path(scratch), REPORTS))
    RECORDED.mkdir(exist_ok=True)
    for name, response in recorded.items():
        (RECORDED / f"{name}.json").write_text(json.dumps(response, indent=1) + "\n")
