# SPDX-License-Identifier: Apache-2.0
"""Entry points of the npm package in Node, without a DOM, as server-rendering frameworks import them."""

import json
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

from tests.browser.sdk.wire import FOLDERS

PACKAGE = FOLDERS["src"].parent
PROGRAM = """
const failed = {};
for (const entry of JSON.parse(process.argv[1])) {
  const names = await import(entry).then(Object.keys, (error) => void (failed[entry] = String(error)));
  if (names && !names.length) failed[entry] = "exports nothing";
}
const {FranklySurvey} = await import("@frankly/sdk/element");
const {Client} = await import("@frankly/sdk"), link = "https://host/s/" + "ab".repeat(16);
const refused = await Client.open(link).then(() => "", ({code}) => code);
console.log(JSON.stringify([failed, typeof FranklySurvey, refused, typeof document]));
"""


def test_every_entry_can_be_imported_where_there_is_no_dom(tmp_path: Path) -> None:
    exported = json.loads((PACKAGE / "package.json").read_text("utf-8"))["exports"]
    entries = ["@frankly/sdk" + name[1:] for name in exported if "*" not in name]
    assert len(entries) == 15
    (tmp_path / "node_modules" / "@frankly").mkdir(parents=True)
    (tmp_path / "node_modules" / "@frankly" / "sdk").symlink_to(PACKAGE)
    node, _ = compute_driver_executable()
    command = [node, "--input-type=module", "-e", PROGRAM, json.dumps(entries)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    failed, kind, refused, document = json.loads(done.stdout)
    assert failed == {}
    assert (kind, refused, document) == ("function", "insecure_transport", "undefined")
