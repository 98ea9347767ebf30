# SPDX-License-Identifier: Apache-2.0
"""The browser SDK in Chromium: what verifying and sampling a 64×64 table costs, and how many kilobytes a page loads.

Sizes are of what an entry loads at once, compressed together: the sources as they are served, comments and all, and, if
a program `esbuild` is on the path, bundled and minified by it. What is loaded only when a survey needs it stands apart.
"""

import gzip
import re
import shutil
import subprocess
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
_ENTRIES = ("core", "index", "element")
_STATIC, _LATER = (
    re.compile(r'^(?:import|export) .*?from "\./([\w.]+)"', re.MULTILINE),
    re.compile(r"=> import\(\"\./([\w.]+)\"\)"),
)
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
    """Kilobytes by entry, and of each part that is loaded later."""
    text = {path.name: path.read_text("utf-8") for path in _SOURCES.glob("*.js")}
    later = sorted({name for content in text.values() for name in _LATER.findall(content)})
    found = {
        f"{name}_source_gzip_kb": _kb("".join(text[one] for one in _loads(text, f"{name}.js"))) for name in _ENTRIES
    }
    found |= {f"later_{name[:-3].replace('.', '_')}_source_gzip_kb": _kb(text[name]) for name in later}
    esbuild = shutil.which("esbuild")
    if esbuild is None:
        return found
    apart = [f"--external:./{name}" for name in later]
    for name in _ENTRIES:
        found[f"{name}_minified_gzip_kb"] = _kb(_bundle(esbuild, f"{name}.js", *apart))
        found[f"{name}_with_all_minified_gzip_kb"] = _kb(_bundle(esbuild, f"{name}.js"))
    return found


def _loads(text: dict[str, str], entry: str) -> list[str]:
    """Every module that an entry imports at once, itself included."""
    found = [entry]
    for name in found:
        found += [one for one in _STATIC.findall(text[name]) if one not in found]
    return found


def _bundle(esbuild: str, entry: str, *options: str) -> str:
    command = [esbuild, entry, "--bundle", "--minify", "--format=esm", "--target=es2022", *options]
    return subprocess.run(command, cwd=_SOURCES, check=True, capture_output=True, text=True).stdout


def _kb(text: str) -> float:
    return len(gzip.compress(text.encode(), 9)) / 1024


if __name__ == "__main__":
    main(__doc__, measure)
