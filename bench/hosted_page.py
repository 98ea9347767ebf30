# SPDX-License-Identifier: Apache-2.0
"""Time until a survey on the hosted page can be answered, with a slow connection or processor.

first_ms: the questions are shown, still disabled. interactive_ms: the survey is verified and its form
open. Both with 400 kbit/s, 400 ms of latency and an empty cache. longest_task_ms: the longest task of the
page's main thread, on a processor slowed six times. script_cpu_ms, other_cpu_ms: processor time of the
longest task that runs scripts and of the longest other one (layout, creation of the document), at full
speed; unlike the times above, they hardly depend on what else the machine does. requests, kilobytes: of
one visit, headers included.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _runner import Result, Samples, main, once
from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tests` is not an installed package

from tests.browser.sdk.site import Site, hosted
from tests.chromium import CHROMIUM, QUIET

ROUNDS, SLOWDOWN = 5, 6
LATENCY_MS, BYTES_PER_S = 400, 400_000 / 8
LIMIT_INTERACTIVE_MS, LIMIT_TASK_MS, LIMIT_REQUESTS = 2500, 50, 6
_WATCH = """
window.seen = {longest: 0};
new PerformanceObserver((list) => {
  for (const {duration} of list.getEntries()) seen.longest = Math.max(seen.longest, duration);
}).observe({type: "longtask", buffered: true});
new MutationObserver(() => {
  if (document.querySelector("[aria-busy=true] fieldset")) seen.first ??= performance.now();
  const root = document.querySelector("frankly-survey")?.shadowRoot;
  if (!root || seen.watched) return;
  seen.watched = true;
  new MutationObserver(() => {
    if (root.querySelector("button[type=submit]")) seen.interactive ??= performance.now();
  }).observe(root, {childList: true, subtree: true});
}).observe(document, {childList: true, subtree: true});
"""


def measure() -> Result:
    """Visit the page of an example survey with an empty cache, throttled in two ways."""
    samples: Samples = {}
    with (
        tempfile.TemporaryDirectory() as home,
        hosted(Path(home)) as site,
        sync_playwright() as one,
    ):
        browser = one.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        slow_network = [_visit(browser, site, network=True, slowdown=1) for _ in range(ROUNDS)]
        traced = [_traced(browser, site) for _ in range(ROUNDS)]
        slow_processor = [
            _visit(browser, site, network=False, slowdown=SLOWDOWN) for _ in range(ROUNDS)
        ]
        browser.close()
    samples["first_ms"] = [seen["first"] for seen in slow_network]
    samples["interactive_ms"] = [seen["interactive"] for seen in slow_network]
    samples["longest_task_ms"] = [seen["longest"] for seen in slow_processor]
    for i, name in enumerate(("script_cpu_ms", "other_cpu_ms")):
        samples[name] = [pair[i] for pair in traced]
    samples |= once({"requests": slow_network[0]["requests"], "kilobytes": slow_network[0]["kb"]})
    at_most = {
        "interactive_ms": LIMIT_INTERACTIVE_MS,
        "longest_task_ms": LIMIT_TASK_MS,
        "requests": LIMIT_REQUESTS,
    }
    return Result("hosted_page", samples, at_most)


def _traced(browser: Browser, site: Site) -> tuple[float, float]:
    """Return the processor time of the longest task with scripts and of the longest without, in ms."""
    browser.start_tracing(categories=["toplevel", "devtools.timeline", "v8"])
    _visit(browser, site, network=False, slowdown=1)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    spans = [
        event
        for event in events
        if event.get("ph") == "X" and (event["pid"], event["tid"]) in threads and "tdur" in event
    ]
    longest = {True: 0.0, False: 0.0}
    for task in spans:
        if task["name"] != "ThreadControllerImpl::RunTask":
            continue
        inner = {
            event["name"]
            for event in spans
            if event["tid"] == task["tid"]
            and task["ts"] <= event["ts"] < task["ts"] + task["dur"]
            and event["tdur"] > task["tdur"] / 2
        }
        has_script = bool(inner & {"v8.callFunction", "v8.evaluateModule", "V8.CompileCode"})
        longest[has_script] = max(longest[has_script], task["tdur"] / 1000)
    return longest[True], longest[False]


def _visit(browser: Browser, site: Site, *, network: bool, slowdown: int) -> dict[str, Any]:
    context = browser.new_context()
    context.add_init_script(_WATCH)
    page = context.new_page()
    session = context.new_cdp_session(page)
    received: list[float] = []
    session.on("Network.loadingFinished", lambda told: received.append(told["encodedDataLength"]))
    session.send("Network.enable")
    if network:
        limits = {"downloadThroughput": BYTES_PER_S, "uploadThroughput": BYTES_PER_S}
        session.send(
            "Network.emulateNetworkConditions", {"offline": False, "latency": LATENCY_MS, **limits}
        )
    session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    # Playwright's own functions would run scripts in the page, whose tasks are longer than the page's.
    session.send("Page.navigate", {"url": site.link})
    seen: dict[str, Any] = {}
    is_open = False
    while not is_open:
        is_open = "interactive" in seen
        time.sleep(0.3)  # also once more, for the layout of the open form
        answer = session.send("Runtime.evaluate", {"expression": "seen", "returnByValue": True})
        seen = answer["result"].get("value") or {}
    context.close()
    return seen | {"requests": len(received), "kb": sum(received) / 1000}


if __name__ == "__main__":
    main(__doc__, measure)
