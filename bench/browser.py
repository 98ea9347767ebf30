# SPDX-License-Identifier: Apache-2.0
"""The browser SDK in Chromium: what verifying and sampling a 64×64 table costs, and how many kilobytes a page loads.

Sizes are of the sources as they are served, each file compressed by itself and all of them together; a bundler's figure
is smaller (comments and names go).
"""

import gzip
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from _runner import Result, main
from frankly_protocol.audit import Claim, level_for, parse_epsilon
from frankly_protocol.mechanisms import DenseMechanism
from playwright.sync_api import sync_playwright

_SOURCES = Path(__file__).resolve().parents[1] / "client_sdk" / "browser" / "src"
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]
_NOT_THE_SDK = {"element.js", "hosted.js", "styles.js", "words.js"}
ROUNDS, LIMIT_MS = 21, 5.0
_TRIAL = """async ({table, claim, rounds}) => {
  const [{KINDS, systemBits}, {requirePrivate}] = await Promise.all([import("/mechanisms.js"), import("/audit.js")]);
  const seen = [];
  for (let i = 0; i < rounds; i++) {
    const mechanism = KINDS.dense.read(table, "m"), start = performance.now();
    requirePrivate(mechanism, claim);
    mechanism.sample(i % 64, systemBits);
    seen.push(performance.now() - start);
  }
  const first = seen[0], start = performance.now();
  for (let i = 0; i < 20; i++) KINDS.dense.read(table, "m");
  return {first, median: seen.sort((a, b) => a - b)[rounds >> 1], read: (performance.now() - start) / 20};
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def measure() -> Result:
    """Time it in a page of its own, and weigh the files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(_SOURCES)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=_ARGUMENTS)
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/hosted.css")
            found = page.evaluate(_TRIAL, _given())
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    figures = {f"verify_sample_64x64_{name}_ms": float(found[name]) for name in ("first", "median")}
    figures["read_64x64_ms"] = float(found["read"])
    return Result("browser", figures | _sizes(), limits={"verify_sample_64x64_median_ms": LIMIT_MS})


def _given() -> dict[str, Any]:
    level = level_for(parse_epsilon("1"))
    off = -(-(level[1] << 48) // (level[0] + 63 * level[1]))
    on = (1 << 48) - 63 * off
    table = DenseMechanism(48, tuple(tuple(on if x == y else off for y in range(64)) for x in range(64)))
    return {
        "table": table.params_json(),
        "claim": {"notion": Claim("ldp", level).notion, "level": level},
        "rounds": ROUNDS,
    }


def _sizes() -> dict[str, float]:
    files = {path.name: path.read_bytes() for path in sorted(_SOURCES.glob("*.js"))}
    weigh = {name: len(gzip.compress(content, 9)) / 1024 for name, content in files.items()}
    return {
        "sdk_sources_gzip_kb": sum(kb for name, kb in weigh.items() if name not in _NOT_THE_SDK),
        "sdk_together_gzip_kb": len(gzip.compress(b"".join(v for k, v in files.items() if k not in _NOT_THE_SDK), 9))
        / 1024,
        "element_gzip_kb": sum(kb for name, kb in weigh.items() if name in _NOT_THE_SDK - {"hosted.js"}),
    }


if __name__ == "__main__":
    main(__doc__, measure)
