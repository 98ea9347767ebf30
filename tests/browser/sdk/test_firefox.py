# SPDX-License-Identifier: Apache-2.0
"""Firefox ESR, started as a user would start it, on a page that answers and reports its result.

The tests use no driver: the page reports by requesting /done.html?…, so the installed browser is
unchanged.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.samples import NOW

# All traffic except loopback goes to a proxy that does not exist, so that nothing leaves the
# machine.
PREFERENCES: dict[str, Any] = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Smoke</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; connect-src 'self'">
<script type="module" src="/smoke.js"></script><main></main></html>"""


@contextmanager
def firefox(profile: Path, address: str) -> Iterator[None]:
    """Run Firefox with this profile at this URL, and kill it at the end."""
    command = shutil.which("firefox-esr")
    assert command, "firefox-esr is needed for --full: apt-get install firefox-esr"
    profile.mkdir(exist_ok=True)
    lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines), "utf-8")
    home = {"HOME": str(profile), "PATH": "/usr/bin:/bin", "MOZ_CRASHREPORTER_DISABLE": "1"}
    process = subprocess.Popen(
        [command, "--headless", "--no-remote", "--profile", str(profile), address],
        env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


def result_of(wire: Wire, times: int) -> Any:
    """Wait for result number `times` of the page and return that result."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        results = [
            path.partition("?")[2] for path, _ in wire.requests if path.startswith("/done.html?")
        ]
        if len(results) >= times:
            return json.loads(unquote(results[times - 1]))
        time.sleep(0.1)
    raise AssertionError("Firefox's page did not report within 5 minutes")


@pytest.mark.full_only
def test_firefox_answers_once_by_the_element_and_remembers_it_after_being_killed(
    wire: Wire, tmp_path: Path
) -> None:
    settings = {
        "link": wire.publish(),
        "at": NOW.timestamp() * 1000,
        "choices": {"affair": "yes", "marriage": "good"},
    }
    wire.pages["/smoke.html"] = PAGE
    wire.pages["/done.html"] = b"<!doctype html>"
    wire.pages["/smoke.js"] = f"({program('smoke')})({json.dumps(settings)});".encode()
    with firefox(tmp_path / "profile", f"{wire.origin}/smoke.html"):
        first = result_of(wire, 1)
    assert first == {
        "events": ["opened", "sealed", "sent"],
        "status": "sent",
        "code": None,
        "violations": [],
    }
    with firefox(tmp_path / "profile", f"{wire.origin}/smoke.html"):
        again = result_of(wire, 2)
    assert again == {
        "events": ["opened"],
        "status": "sent",
        "code": "already_answered",
        "violations": [],
    }
    assert len(wire.posted) == len(wire.stored) == 1
    assert len(wire.posted[0]) == wire.documents["ab" * 16].report_length
