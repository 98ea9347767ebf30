# SPDX-License-Identifier: Apache-2.0
"""Bundle: built from the current sources, within its size limits, with the same public names as the SDK."""

import gzip
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from frankly_protocol.languages import EXPLAINED
from frankly_server.web.hosted import integrity
from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import Page

from tests.browser.sdk.wire import FOLDERS, Wire
from tests.frankly_protocol.every_kind import documents
from tests.frankly_protocol.samples import NOW, ldp_block, survey

AT = NOW.timestamp() * 1000
SOURCES, BUNDLE = FOLDERS["src"], FOLDERS["bundle"]
REMAKE = "run `npm ci && npm run bundle` in client_sdk/browser"
# Bytes that a page loads, with each file compressed by gzip -9, as stated in docs/browser.md.
LIMITS = {
    "core": 21_200,
    "core and all that a survey may ask for": 40_000,
    "index": 43_900,
    "element": 52_900,
}
LATER = {
    f"{name}.js"
    for name in "log rare kinds ways tokens memory respondents budget verifier agreement plans arms sources".split()
}

CHECKS = {"core.js", "verifier.js"}
"""The files that check, draw and send for a pinned survey with an LDP or LIP table."""
ENTRIES = ("index.js", "core.js", "explain.js", "texts.js", "element.js", "blind.js", "testing.js")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in folder.glob("*.js")}


def test_the_bundle_was_made_of_these_sources() -> None:
    manifest = json.loads((BUNDLE / "manifest.json").read_text("ascii"))
    assert manifest["sources"] == digests(SOURCES), REMAKE
    makers = ("bundle.mjs", "package-lock.json")
    assert manifest["makers"] == {name: sha256(BUNDLE.parent / name) for name in makers}, REMAKE
    assert manifest["files"] == {
        path.name: integrity(path.read_bytes()) for path in BUNDLE.glob("*.js")
    }, REMAKE
    versions = json.loads((BUNDLE.parent / "package.json").read_text("utf-8"))["devDependencies"]
    makers_of_code = {
        tool: versions[tool] for tool in ("rollup", "terser")
    }  # typescript only checks types
    assert manifest["made_by"] == makers_of_code, REMAKE


def loads(entry: str) -> set[str]:
    """Return the files that a page loads immediately for an entry point."""
    files = {entry}
    for name in re.findall(
        r'(?:from|^import|[;}]import)"\./([\w.]+)"',
        (BUNDLE / entry).read_text("utf-8"),
        re.MULTILINE,
    ):
        files |= loads(name)
    return files


def weigh(names: set[str]) -> int:
    return sum(len(gzip.compress((BUNDLE / name).read_bytes(), 9, mtime=0)) for name in names)


def sizes() -> dict[str, int]:
    by_entry = {name: weigh(loads(f"{name}.js") | CHECKS) for name in ("core", "index", "element")}
    return by_entry | {"core and all that a survey may ask for": weigh(CHECKS | LATER)}


def test_files_import_each_other_by_the_names_of_the_sources() -> None:
    """A minified name could denote a different function in another version; a source name cannot."""
    declared = r"^export (?:async )?(?:const|class|function\*?|let) (\w+)"
    declared_names = {
        name
        for path in SOURCES.glob("*.js")
        for name in re.findall(declared, path.read_text("utf-8"), re.MULTILINE)
    }
    used_names = set()
    for path in BUNDLE.glob("*.js"):
        for names in re.findall(r'(?:import|export)\{([^}]*)\}from"\./', path.read_text("utf-8")):
            used_names |= {name.partition(" ")[0] for name in names.split(",")}
    assert len(used_names) > 40
    assert used_names - declared_names == set()


def test_a_module_of_another_version_fails_by_name(page: Page, wire: Wire) -> None:
    link = wire.publish(documents()["dense srlip"])
    part = """import {nameOfAnotherVersion} from "./core.js";
      export const NOTIONS = {srlip: {fields: "level prior attributes", units: () => 0, candidates: () => []}};"""
    page.route(
        "**/bundle/rare.js", lambda route: route.fulfill(body=part, content_type="text/javascript")
    )
    assert page.evaluate(OPEN, [link, AT, "core", {}]) == [
        "NetworkError",
        "NetworkError",
        "network",
        "no_part",
    ]


def test_package_json_lists_side_effects_and_types_every_entry() -> None:
    package = json.loads((BUNDLE.parent / "package.json").read_text("utf-8"))
    acts = re.compile(r"^(?:speak\(|if \(globalThis\.customElements|Promise\.all\()", re.MULTILINE)
    acting = {path.name for path in SOURCES.glob("*.js") if acts.search(path.read_text("utf-8"))}
    assert acting == {"index.js", "element.js", "hosted.js"}
    bundled = {f"./bundle/{name}" for name in acting if (BUNDLE / name).exists()}
    assert set(package["sideEffects"]) == {f"./src/{name}" for name in acting} | bundled
    entries = {name: entry for name, entry in package["exports"].items() if "*" not in name}
    assert {name for name in entries if "bundle" in name} == {
        f"./bundle/{name}" for name in ENTRIES
    }
    for entry in entries.values():
        assert all(
            (BUNDLE.parent / path).is_file() for path in (entry["types"], entry["default"])
        ), entry


def test_the_bundler_deletes_only_its_own_folder(tmp_path: Path) -> None:
    node, _ = compute_driver_executable()
    (tmp_path / "thesis.txt").write_text("years of work")
    for manifest in (None, "{}", "[1]", '{"files": {"thesis.txt": ""}}'):
        if manifest is not None:
            (tmp_path / "manifest.json").write_text(manifest)
        command = [node, str(BUNDLE.parent / "bundle.mjs"), str(tmp_path)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (completed.returncode, "contains other files than a bundle" in completed.stderr) == (
            1,
            True,
        ), completed.stderr
        assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_the_bundle_has_not_grown() -> None:
    current = sizes()
    assert loads("core.js") == {"core.js"}
    assert loads("verifier.js") == CHECKS
    words = {"core.js", "ways.js", "shown.js", "explain.js", "texts.js"}
    assert loads("element.js") == words | {"element.js"}
    assert loads("index.js") == words | {"index.js"}
    assert {path.name for path in BUNDLE.glob("*.js")} == CHECKS | loads("index.js") | loads(
        "element.js"
    ) | LATER | {"blind.js", "testing.js"} | {
        f"words.{language}.js" for language in EXPLAINED if language != "en"
    }
    assert {name: size for name, size in current.items() if size > LIMITS[name]} == {}, current


def test_the_docs_state_the_size_of_the_bundle(root: Path) -> None:
    page = (root / "docs" / "browser.md").read_text("utf-8")
    for name, size in sizes().items():
        assert f"{size / 1000:.1f} KB" in page, (name, size)
    for name in ("hosted.js", "app.js"):
        brotli, gzip = (
            (BUNDLE.parent / "page" / f"{name}.{end}").stat().st_size for end in ("br", "gz")
        )
        row = rf"^\| `{name}`: .* \| {brotli / 1000:.1f} KB \| {gzip / 1000:.1f} KB \|$"
        assert re.search(row, page, re.MULTILINE), (name, brotli, gzip)


RUN = """async ([link, at, choices]) => {
  const violations = [], {FranklySurvey} = await import("/bundle/element.js"), survey = new FranklySurvey();
  addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
  survey.options = (await import("/bundle/testing.js")).withSeams({spreadMs: 0}, {now: () => at});
  const find = async (what) => {
    for (;;) {
      const found = survey.shadowRoot?.querySelector(what);
      if (found) return found;
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  const sent = new Promise((done) => survey.addEventListener("frankly-sent", done));
  survey.setAttribute("link", link);
  document.querySelector("main").append(survey);
  for (const choice of choices) (await find(`input[value=${choice}]`)).click();
  (await find("button[type=submit]")).click();
  await sent;
  return violations;
}"""


def test_the_bundled_element_shows_questions_and_sends(page: Page, wire: Wire) -> None:
    assert page.evaluate(RUN, [wire.publish(survey(ldp_block())), AT, ["yes"]]) == []
    assert len(wire.stored) == 1
    requested = {
        path.removeprefix("/bundle/") for path, _ in wire.requests if path.startswith("/bundle/")
    }
    assert requested == loads("element.js") | {"verifier.js", "budget.js", "testing.js"}


OPEN = """async ([link, at, entry, policy]) => {
  const [{Client}, {withSeams}] = [await import(`/bundle/${entry}.js`), await import("/bundle/testing.js")];
  const options = {spreadMs: 0, store: link, policy: {cap: "64", ...policy}};
  return Client.open(link, withSeams(options, {now: () => at})).then(
    (client) => [client.trust.pinned, client.close()][0],
    (error) => [error.constructor.name, error.name, error.code, error.detail]);
}"""


@pytest.mark.parametrize(
    ("name", "part"),
    [("dense srlip", "rare"), ("subset rldp", "rare"), ("agreement ldp", "agreement")],
)
def test_modules_that_a_survey_needs_load_later(
    page: Page, wire: Wire, name: str, part: str
) -> None:
    assert page.evaluate(OPEN, [wire.publish(documents()[name]), AT, "core", {}]) is True
    requested = [path for path, _ in wire.requests if path.startswith("/bundle/")]
    assert requested[:2] == ["/bundle/core.js", "/bundle/testing.js"]
    beside = {"rare": "kinds", "agreement": "ways"}  # what these documents need as well
    parts = {f"/bundle/{one}.js" for one in (part, beside[part])}
    assert set(requested[2:]) - {"/bundle/core.js"} == {"/bundle/verifier.js", *parts}


def test_errors_keep_their_class_names_and_messages(page: Page, wire: Wire) -> None:
    link = wire.publish(survey(ldp_block(epsilon="5")))
    kind, name, code, detail = page.evaluate(OPEN, [link, AT, "index", {"cap": "1"}])
    assert (kind, name, code) == ("PolicyRefused", "PolicyRefused", "policy_cap")
    message = r"its report can move the odds about the answers by 5\.\d{4} nats, but this app allows 1: lower .*"
    assert re.fullmatch(message, detail)
    assert page.evaluate(OPEN, [link[:-1], AT, "index", {}])[:3] == [
        "LinkError",
        "LinkError",
        "link",
    ]
