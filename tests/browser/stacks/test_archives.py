# SPDX-License-Identifier: Apache-2.0
"""The npm archive of a release, installed by npm: what it asks a registry for, and a project of Vite."""

import json
import subprocess
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext

from tests.browser.sdk.site import Site
from tests.browser.stacks.conftest import EXAMPLES, PACKAGES, serving, visit
from tests.deploy.index import Index
from tests.threads import listening
from tools.release.npm import contents, pack

PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Plain</title><script type="module" src="./main.js"></script></head>
<body><main></main></body></html>
"""
CONFIG = 'export default { build: { target: "es2022" }, worker: { format: "es" } };'  # docs/web_frameworks.md
MAIN = """\
import "@frankly/sdk/element";

const element = document.createElement("frankly-survey");
element.setAttribute("link", new URLSearchParams(location.search).get("link"));
document.querySelector("main").append(element);
"""


def _node(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[Any]":
    return subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def test_a_release_packs_the_files_that_npm_would() -> None:
    folder = PACKAGES / "browser"
    done = _node(folder, "npm", "pack", "--dry-run", "--json", "--ignore-scripts")
    [packed] = json.loads(done.stdout)
    assert {file["path"] for file in packed["files"]} == set(contents(folder))


def test_npm_asks_a_registry_for_no_name_of_ours(tmp_path: Path) -> None:
    """It asks for the frameworks, which are optional, and does without them."""
    archive = pack(PACKAGES / "browser", tmp_path, 0)
    (tmp_path / "app").mkdir()
    (tmp_path / "app/package.json").write_text('{"private": true}')
    with listening(index := Index(tmp_path)) as origin:
        options = ("--registry", origin, "--fetch-retries", "0", "--no-audit", "--no-fund")
        done = _node(tmp_path / "app", "npm", "install", *options, str(archive))
    assert done.returncode == 0, done.stderr
    assert index.asked <= {"react", "vue", "survey-core"}
    assert [path.name for path in (tmp_path / "app/node_modules").glob("[!.]*")] == ["@frankly"]


def test_a_plain_project_of_vite_builds_with_the_archive(
    root: Path, context: BrowserContext, site: Site, tmp_path: Path
) -> None:
    archive = pack(PACKAGES / "browser", tmp_path, 0)
    app = tmp_path / "app"
    app.mkdir()
    assert CONFIG in (root / "docs/web_frameworks.md").read_text("utf-8")
    files = {"package.json": '{"private": true}', "index.html": PAGE, "main.js": MAIN}
    for file, text in (files | {"vite.config.js": CONFIG}).items():
        (app / file).write_text(text)
    for command in (
        ("npm", "install", "--offline", "--no-audit", "--no-fund", str(archive)),
        ("node", str(EXAMPLES / "node_modules/vite/bin/vite.js"), "build"),
    ):
        done = _node(app, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    with serving(app / "dist") as origin:
        page, _ = visit(context, origin, site, ".")
        for label in ("In the south", "Yes", "Never"):
            page.get_by_label(label, exact=True).check()
        page.get_by_role("button").click()
        page.get_by_text("Thank you").wait_for()
        assert len(page.workers) == 1  # one that failed would have been ended
