# SPDX-License-Identifier: Apache-2.0
"""Commands of the conformance suite in Chromium: python -m tests.browser.sdk.conformance
init|refresh|answer.

Each command starts Chromium with the store's profile, opens a page on the survey's origin that
loads its modules from client_sdk/browser/src, and runs the SDK in that page. Commands on the same
store wait for each other, because two Chromium processes cannot share a profile. The Python
command's reader parses the input; the browser checks links, limits, documents, answers and random
bits.

`serve SOCKET [FOLDER]` does the same for the commands of ask.py in one browser, which it starts
once, with one context per store. FOLDER is `src`, or `bundle` for the modules built by bundle.mjs.
"""

import fcntl
import json
import socketserver
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem, problem_body
from frankly_sdk import cli
from frankly_sdk import conformance as python
from playwright.sync_api import Browser, BrowserContext, Route, sync_playwright

from tests.browser.sdk.wire import FOLDERS, TYPES, program
from tests.chromium import CHROMIUM, QUIET

PLACE = "/sdk-under-test/"
USAGE = 2
EXITS = {
    **dict.fromkeys(
        ("InvalidInput", "UnknownChoice", "LinkError", "InsecureTransport"), cli.BAD_INPUT
    ),
    **dict.fromkeys(
        ("PolicyRefused", "BudgetExceeded", "SurveyClosed", "AlreadyAnswered"), cli.REFUSED
    ),
    "NetworkError": cli.NETWORK,
}
Device = Callable[[Path], AbstractContextManager[BrowserContext]]


def main(arguments: list[str]) -> int:
    """Run one command, or serve."""
    if len(arguments) in (2, 3) and arguments[0] == "serve":
        serve(*arguments[1:])
        return 0
    is_command = len(arguments) == 1 and arguments[0] in python._FIELDS
    status, text = (
        run(arguments[0], sys.stdin.read(), own_profile)
        if is_command
        else (USAGE, "init, refresh or answer?\n")
    )
    (sys.stderr if status else sys.stdout).write(text)
    return status


def run(name: str, text: str, device: Device, sdk: str = "src") -> tuple[int, str]:
    """Return the exit code (the same as frankly_sdk.conformance returns) and the JSON line to write."""
    try:
        result = in_browser(name, python._read_request(name, text), device, sdk)
    except FranklyError as error:
        result = {
            "failed": type(error).__name__,
            "code": error.code,
            "detail": error.detail,
            "field": error.field,
        }
    failed = result.get("failed")
    body = problem(result) if failed else result
    return EXITS.get(failed, cli.INTEGRITY) if failed else 0, json.dumps(body) + "\n"


@contextmanager
def own_profile(folder: Path) -> Iterator[BrowserContext]:
    """Run Chromium with this store's profile as soon as no other command uses the profile."""
    with (folder / "lock").open("w") as lock, sync_playwright() as playwright:
        fcntl.flock(lock, fcntl.LOCK_EX)
        profile = str(folder / "profile")
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=QUIET
        )
        yield context
        context.close()


def contexts_of(browser: Browser) -> Device:
    """Return a device with one browser context per store; contexts live as long as the browser."""
    contexts: dict[Path, BrowserContext] = {}

    @contextmanager
    def device(folder: Path) -> Iterator[BrowserContext]:
        if folder not in contexts:
            contexts[folder] = browser.new_context()
        yield contexts[folder]

    return device


def serve(address: str, sdk: str = "src") -> None:
    """Serve commands on a socket one at a time until killed. A request is a line with the command's
    name, then its input."""
    with sync_playwright() as playwright:
        device = contexts_of(playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET))

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                name, _, text = self.rfile.read().decode("utf-8", "surrogatepass").partition("\n")
                status, output = (
                    run(name, text, device, sdk)
                    if name in python._FIELDS
                    else (USAGE, "which command?\n")
                )
                self.wfile.write(f"{status}\n{output}".encode())

        with socketserver.UnixStreamServer(address, Handler) as server:
            server.serve_forever()


def problem(refusal: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the problem object of an error; codes that only devices use are not in the server's table."""
    kind = Problem.from_code(refusal["code"])
    if kind is not None:
        return problem_body(kind, refusal["detail"], refusal["field"])
    general = {
        "type": f"urn:frankly:problem:{refusal['code']}",
        "title": "The device refused.",
        "status": 422,
    }
    return general | {name: refusal[name] for name in ("code", "detail", "field")}


def in_browser(name: str, request: Mapping[str, Any], device: Device, sdk: str) -> dict[str, Any]:
    """Run a command in a page; the store's folder contains the settings from `init`."""
    folder = python._folder(request)
    if name == "init":
        if request.get("keys") is not None:
            python._keys(request["keys"])
        folder.mkdir(parents=True, exist_ok=True)
        install = {
            "link": request["link"],
            "policy": request.get("policy") or {},
            "keys": request.get("keys"),
        }
        result = at_page(device(folder), "http://localhost", {"command": name, **install}, sdk)
        if "failed" not in result:
            (folder / "install.json").write_text(json.dumps(install), "utf-8")
        return result
    if type(request.get("patience_s", 0)) is not int:
        raise python._bad("patience_s", "expected whole seconds")
    try:
        install = json.loads((folder / "install.json").read_text("utf-8"))
    except OSError:
        raise python._bad("store", "there is no install here: run init first") from None
    if request.get("bits"):
        python._Bits(request["bits"])
    at = python._clock(request["now"]).now().timestamp() * 1000 if request.get("now") else None
    address = urlsplit(install["link"])
    origin = f"{address.scheme}://{address.netloc}"
    return at_page(device(folder), origin, {"command": name, **install, **request, "at": at}, sdk)


def at_page(
    device: AbstractContextManager[BrowserContext],
    origin: str,
    request: Mapping[str, Any],
    sdk: str,
) -> dict[str, Any]:
    """Run the program in a page on this origin, with the modules of this folder."""
    with device as context:
        page = context.new_page()
        page.route(f"**{PLACE}*", lambda route: fulfil(route, sdk))
        page.goto(f"{origin}{PLACE}blank.html")
        result: dict[str, Any] = page.evaluate(program("conformance"), request)
        page.close()
        return result


def fulfil(route: Route, sdk: str) -> None:
    """Fulfil a request with an SDK file or the empty page."""
    name = route.request.url.rpartition("/")[2]
    body = (
        (FOLDERS[sdk] / name).read_bytes()
        if name.endswith(".js")
        else b"<!doctype html><title>A device</title>"
    )
    route.fulfill(body=body, content_type=TYPES[Path(name).suffix])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
