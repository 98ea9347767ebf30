# SPDX-License-Identifier: Apache-2.0
"""python -m tests.browser.sdk.conformance init|refresh|answer: the browser SDK as the suite drives it.

A command starts Chromium on the store's own profile, opens a page of the survey's origin whose modules are the files
of client_sdk/browser/src, and lets the SDK in that page do the work; commands on one store wait for each other, as
Chromium wants a profile to itself. What a command takes is read by the Python command's own reader: links, limits,
documents, answers and random bits are the browser's to judge.
"""

import argparse
import fcntl
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem, problem_body
from frankly_sdk import conformance as python
from playwright.sync_api import Page, Route, sync_playwright

from tests.browser.sdk.conftest import CHROMIUM, QUIET
from tests.browser.sdk.wire import SOURCES, TYPES, program

PLACE = "/sdk-under-test/"
EXITS = {
    **dict.fromkeys(("InvalidInput", "UnknownChoice", "LinkError", "InsecureTransport"), python.BAD_INPUT),
    **dict.fromkeys(("PolicyRefused", "BudgetExceeded", "SurveyClosed", "AlreadyAnswered"), python.REFUSED),
    "NetworkError": python.NETWORK,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command, with the exit codes of frankly_sdk.conformance."""
    parser = argparse.ArgumentParser("browser conformance")
    parser.add_argument("command", choices=sorted(python._FIELDS))
    name: str = parser.parse_args(arguments).command
    try:
        given = python._given(name, sys.stdin.read())
        told = in_browser(name, given)
    except FranklyError as error:
        told = {"failed": type(error).__name__, "code": error.code, "detail": error.detail, "field": error.field}
    if "failed" not in told:
        sys.stdout.write(json.dumps(told) + "\n")
        return 0
    status = EXITS.get(told["failed"], python.INTEGRITY)
    sys.stderr.write(json.dumps(problem(told)) + "\n")
    return status


def problem(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The problem object of an error: codes of the device alone are not in the server's table."""
    known = Problem.from_code(told["code"])
    if known is not None:
        return problem_body(known, told["detail"], told["field"])
    plain = {"type": f"urn:frankly:problem:{told['code']}", "title": "The device refused.", "status": 422}
    return plain | {name: told[name] for name in ("code", "detail", "field")}


def in_browser(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Do it in a page; what `init` was given is kept in the store's folder."""
    folder = python._folder(given)
    if name == "init":
        folder_keys = given.get("keys")
        if folder_keys is not None:
            python._keys(folder_keys)
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"link": given["link"], "policy": given.get("policy") or {}, "keys": folder_keys}
        told = at_page(folder, "http://localhost", {"command": name, **kept})
        if "failed" not in told:
            (folder / "install.json").write_text(json.dumps(kept), "utf-8")
        return told
    if type(given.get("patience_s", 0)) is not int:
        raise python._bad("patience_s", "expected whole seconds")
    try:
        kept = json.loads((folder / "install.json").read_text("utf-8"))
    except OSError:
        raise python._bad("store", "there is no install here: run init first") from None
    if given.get("bits"):
        python._Bits(given["bits"])
    at = python._clock(given.get("now")).now().timestamp() * 1000 if "now" in given else None
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(kept["link"]))
    return at_page(folder, origin, {"command": name, **kept, **given, "at": at})


def at_page(folder: Path, origin: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the program in a page of this origin, alone with the store's profile."""
    with (folder / "lock").open("w") as lock, sync_playwright() as playwright:
        fcntl.flock(lock, fcntl.LOCK_EX)
        context = playwright.chromium.launch_persistent_context(
            str(folder / "profile"), executable_path=CHROMIUM, args=QUIET
        )
        context.route(f"**{PLACE}*", serve)
        page: Page = context.new_page()
        page.goto(f"{origin}{PLACE}blank.html")
        told: dict[str, Any] = page.evaluate(program("conformance"), given)
        context.close()
        return told


def serve(route: Route) -> None:
    """Answer with a file of the SDK, or the empty page."""
    name = route.request.url.rpartition("/")[2]
    body = (SOURCES / name).read_bytes() if name.endswith(".js") else b"<!doctype html><title>A device</title>"
    route.fulfill(body=body, content_type=TYPES[Path(name).suffix])


if __name__ == "__main__":
    sys.exit(main())
