# SPDX-License-Identifier: Apache-2.0
"""The browser SDK in Chromium: time to verify and sample a 64×64 table, and size of the files.

ratio_verify_sample_plain: relative to a verifier that compares every pair of every column, in the
same page. Kilobytes are of `bundle/`, each file compressed by gzip -9; ratio_…_sources: relative to
the sources, with their comments. later_…: files that are loaded only if a survey needs them.
"""

import gzip
import re
import threading
from collections.abc import Iterable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from _runner import Result, Samples, main, once, ratios
from frankly_protocol.audit import Claim, level_for, parse_epsilon
from frankly_protocol.mechanisms import DenseMechanism
from playwright.sync_api import sync_playwright

from tests.chromium import CHROMIUM, QUIET

_PACKAGE = Path(__file__).resolve().parents[1] / "client_sdk" / "browser"
_ENTRIES = ("core", "index", "element")
_ASKED_FOR = tuple(
    f"{name}.js"
    for name in "log rare kinds ways agreement tokens memory respondents budget plans arms sources".split()
)
"""Files that are loaded only if a survey or a host page needs them."""
_STATIC = re.compile(r'(?:from|^import|[;}]import) ?"\./([\w.]+)"', re.MULTILINE)
_PLACES = ("bundle", "src")
ROUNDS, LIMIT_MS = 21, 5.0
LIMIT_CORE_KB = 12.5
_TRIAL = """async ({table, claim, rounds}) => {
  const [{kinds, systemBits}, {requirePrivate}] = await Promise.all([import("/mechanisms.js"), import("/audit.js")]);
  const ms = (trial) => { const start = performance.now(); trial(); return performance.now() - start; };
  const plain = ({weights}, [p, q]) => {
    for (const y of weights[0].keys())
      for (const a of weights) for (const b of weights)
        if (BigInt(a[y]) * BigInt(q) > BigInt(b[y]) * BigInt(p)) throw new Error("not private");
  };
  const seen = {read: [], ours: [], plain: []};
  let mechanism;
  for (let i = 0; i < rounds; i++) {
    seen.read.push(ms(() => mechanism = kinds().dense.read(table, "m")));
    seen.ours.push(ms(() => { requirePrivate(mechanism, claim); mechanism.sample(i % 64, systemBits); }));
    seen.plain.push(ms(() => { plain(table, claim.level); mechanism.sample(i % 64, systemBits); }));
  }
  return seen;
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


def measure() -> Result:
    """Time verification and sampling in a page, and measure the sizes of the files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(_PACKAGE / "src")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/hosted.css")
            timings = page.evaluate(_TRIAL, _given())
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    first = {
        name: values.pop(0) for name, values in timings.items()
    }  # the first round includes compilation
    samples: Samples = {
        "verify_sample_64x64_first_ms": [first["ours"]],
        "verify_sample_64x64_ms": timings["ours"],
    }
    samples |= {
        "plain_64x64_ms": timings["plain"],
        "ratio_verify_sample_plain": ratios(timings["ours"], timings["plain"]),
    }
    samples |= {"read_64x64_ms": timings["read"]} | once(_sizes())
    at_most = {"verify_sample_64x64_ms": LIMIT_MS, "core_kb": LIMIT_CORE_KB}
    return Result("browser", samples, at_most)


def _given() -> dict[str, Any]:
    level = level_for(parse_epsilon("1"))
    off = -(-(level[1] << 48) // (level[0] + 63 * level[1]))
    on = (1 << 48) - 63 * off
    table = DenseMechanism(
        48, tuple(tuple(on if x == y else off for y in range(64)) for x in range(64))
    )
    return {
        "table": table.params_json(),
        "claim": {"notion": Claim("ldp", level).notion, "level": level},
        "rounds": ROUNDS,
    }


def _sizes() -> dict[str, float]:
    """Return kilobytes of each entry, of `core` with all later files, and of each later file."""
    text = {
        place: {path.name: path.read_text("utf-8") for path in (_PACKAGE / place).glob("*.js")}
        for place in _PLACES
    }
    bundle, sources = text["bundle"], text["src"]
    sizes = {f"{name}_kb": _kb(bundle, _needed(bundle, name)) for name in _ENTRIES}
    sizes |= {
        f"ratio_{name}_sources": sizes[f"{name}_kb"] / _kb(sources, _needed(sources, name))
        for name in _ENTRIES
    }
    sizes["core_with_all_kb"] = _kb(bundle, {*_needed(bundle, "core"), *_ASKED_FOR})
    return sizes | {
        f"later_{name[:-3].replace('.', '_')}_kb": _kb(bundle, [name])
        for name in (*_ASKED_FOR, "words.ar.js")
    }


def _needed(text: dict[str, str], entry: str) -> set[str]:
    """Return the files of an entry and of its worker."""
    return {*_loads(text, f"{entry}.js"), *_loads(text, "verifier.js")}


def _loads(text: dict[str, str], entry: str) -> list[str]:
    """Return the files that an entry imports statically, itself included."""
    files = [entry]
    for name in files:
        files += [
            name_of
            for name_of in dict.fromkeys(_STATIC.findall(text[name]))
            if name_of not in files
        ]
    return files


def _kb(text: dict[str, str], names: Iterable[str]) -> float:
    return sum(len(gzip.compress(text[name].encode(), 9, mtime=0)) for name in names) / 1000


if __name__ == "__main__":
    main(__doc__, measure)
