# SPDX-License-Identifier: Apache-2.0
"""Entry points of the npm package in Node, without a DOM or with parts of one, as on servers that render pages."""

import json
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

from tests.browser.sdk.wire import FOLDERS

PACKAGE = FOLDERS["src"].parent
# What servers and tests of apps define before they import the element; each in a thread of its own.
CLASS, REGISTRY = (
    "globalThis.HTMLElement = class {};",
    "globalThis.customElements = {get() {}, define() {}};",
)
NULLS = "HTMLElement customElements document location scheduler window".split()
MISSING = "navigator crypto fetch Intl MessageChannel performance".split()
GLOBALS = {
    "nothing": "",
    "a registry without a class": REGISTRY,
    "a registry that cannot be read": f"{CLASS} globalThis.customElements = {{define() {{}}}};",
    "a class without a shadow root": CLASS + REGISTRY,
    "a class without a registry": f"{CLASS} globalThis.customElements = {{}};",
    "a class that is none": f"globalThis.HTMLElement = {{}}; {REGISTRY}",
    "null": f"for (const name of {NULLS}) globalThis[name] = null;",
    "an empty document": "globalThis.window = globalThis; globalThis.document = globalThis.location = {};",
    "less than Node has": f"for (const name of {MISSING}) delete globalThis[name];",
}  # fmt: skip
PROGRAM = """
const {Worker} = await import("node:worker_threads");
const [entries, globals, program] = JSON.parse(process.argv[1]), results = {};
await Promise.all(Object.entries(globals).map(([name, set]) => new Promise((done) => {
  const code = `import {parentPort, workerData} from "node:worker_threads"; ${set}
    (${program})(workerData).then((told) => parentPort.postMessage(told));`;
  const thread = new Worker(code, {eval: true, workerData: entries});
  thread.on("message", (told) => { results[name] = told; });
  thread.on("error", (error) => { results[name] = String(error); });
  thread.on("exit", done);
})));
console.log(JSON.stringify(results));
"""
FRAMEWORKS = {"./react", "./vue", "./surveyjs"}
"""They import what Node has only with --full: tests/browser/stacks/test_without_dom.py."""
IMPORTS = """async (entries) => {
  const failed = {};
  for (const entry of entries) {
    const names = await import(entry).then(Object.keys, (error) => void (failed[entry] = String(error)));
    if (names && !names.length && !entry.endsWith("verifier.js")) failed[entry] = "exports nothing";
  }
  const {FranklySurvey} = await import("@frankly/sdk/element");
  const {Client} = await import("@frankly/sdk"), link = "https://host/s/" + "ab".repeat(16);
  return [failed, typeof FranklySurvey, await Client.open(link).then(() => "", ({code}) => code)];
}"""


def test_every_entry_can_be_imported_where_there_is_no_dom(tmp_path: Path) -> None:
    exported = json.loads((PACKAGE / "package.json").read_text("utf-8"))["exports"]
    names = {name for name in exported if "*" not in name} - FRAMEWORKS
    assert len(names) == 15
    names |= {f"./bundle/{path.name}" for path in FOLDERS["bundle"].glob("*.js")}
    entries = ["@frankly/sdk" + name[1:] for name in sorted(names)]
    (tmp_path / "node_modules" / "@frankly").mkdir(parents=True)
    (tmp_path / "node_modules" / "@frankly" / "sdk").symlink_to(PACKAGE)
    node, _ = compute_driver_executable()
    given = json.dumps([entries, GLOBALS, IMPORTS])
    command = [node, "--input-type=module", "-e", PROGRAM, given]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    expected = [{}, "function", "insecure_transport"]
    assert json.loads(done.stdout) == dict.fromkeys(GLOBALS, expected)
