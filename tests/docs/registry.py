# SPDX-License-Identifier: Apache-2.0
"""Treatment of every fenced block of the documentation: run, compared with fresh output, or only shown.

Pages in FOLLOWED are run whole: a block that is no command, file or output fails. Blocks of other
pages are listed below by page and first line; test_every_block.py finds missing ones.
"""

from typing import Final, NamedTuple

FOLLOWED: Final = {
    "README.md": "tests/deploy/test_readme.py",
    "docs/tour.md": "tests/docs/test_guides.py",
    "docs/embed.md": "tests/docs/test_guides.py",
    "docs/run_a_survey.md": "tests/docs/test_guides.py",
    "docs/analyse.md": "tests/docs/test_guides.py",
}
"""Page → the test that follows it from its first block to its last."""


class Fate(NamedTuple):
    """Treatment of a block, the test that checks it (or a stand-in), and why it is only shown."""

    treatment: str
    test: str
    why: str = ""


def _run(test: str) -> Fate:
    return Fate("run", test)


def _made(test: str) -> Fate:
    return Fate("made again", test)


def _shown(test: str, why: str) -> Fate:
    return Fate("shown", test, why)


_BROWSER, _SDK, _DESIGN = (
    "tests/browser/sdk/test_pages.py",
    "tests/frankly_sdk/test_docs.py",
    "tests/docs/test_design_examples.py",
)
_HERE, _GUIDES, _DRILLS = (
    "tests/docs/test_loose_blocks.py",
    "tests/docs/test_guides.py",
    "tests/deploy/test_drills.py",
)
_FIRST: Final = "tests/deploy/test_first_start.py"

BLOCKS: Final[dict[tuple[str, str], Fate]] = {
    ("CONTRIBUTING.md", "python3 run.py quick"): _shown(
        "tests/deploy/test_checks.py", "the checks are tests"
    ),
    ("docs/admin.md", ",no,yes"): _run("tests/frankly_server/surveys/test_protection.py"),
    ("docs/admin.md", "FRANKLY_WEBHOOK_HOSTS="): _run(_HERE),
    ("docs/admin.md", "POST /frankly HTTP/1.1"): _made(_HERE),
    ("docs/browser.md", '<script type="module" src="/frankly/element.js">'): _run(_BROWSER),
    ("docs/browser.md", '<script type="importmap">'): _made(_BROWSER),
    ("docs/browser.md", 'import "@frankly/sdk/element";'): _run(_BROWSER),
    ("docs/browser.md", 'import { Client } from "@frankly/sdk";'): _run(_BROWSER),
    ("docs/browser.md", "import * as ed25519"): _run(_BROWSER),
    ("docs/browser.md", "import { createElement, useEffect, useRef }"): _run(_BROWSER),
    ("docs/choosing.md", "Promised: 0.5 nats about the limitation"): _made(
        "tests/docs/test_numbers.py"
    ),
    ("docs/conformance.md", 'echo \'{"store"'): _run("tests/conformance/test_docs.py"),
    ("docs/conformance.md", "CONFORMANCE_COMMAND="): _shown(
        "tests/browser/sdk/test_conformance.py", "needs another SDK; the test uses the browser's"
    ),
    ("docs/design.md", '{"prior": {"joint": [[40, 110, 210, 140]'): _run(_DESIGN),
    ("docs/design.md", '{"kind": "dense"'): _made(_DESIGN),
    ("docs/design.md", '{"form": {"questions": [{"choices": 2}'): _run(
        "tests/docs/test_form_examples.py"
    ),
    ("docs/design.md", '$ echo \'{"weights"'): _run(_HERE),
    ("docs/design.md", "from fractions import Fraction"): _run(_DESIGN),
    ("docs/estimates.md", "GET /v1/surveys/ID/estimates?"): _made(_HERE),
    ("docs/estimates.md", "from frankly_analyst import Analyst"): _run(_GUIDES),
    ("docs/estimates.md", 'Analyst(url, key).plan("n"'): _run(_GUIDES),
    ("docs/estimates.md", 'echo \'{"prior"'): _run(_HERE),
    ("docs/estimates.md", 'echo \'{"notion"'): _run(_HERE),
    ("docs/estimates.md", 'echo \'{"form"'): _run(_HERE),
    ("docs/maths/notions.md", "ldp → srlip → lip → alip → pml → dpv"): _made(
        "tests/frankly_protocol/audit/test_implications.py"
    ),
    ("docs/operations.md", 'umask 077\necho "POSTGRES_PASSWORD='): _run(_FIRST),
    ("docs/operations.md", "umask 077\nfor image in POSTGRES_IMAGE="): _run(_FIRST),
    ("docs/operations.md", "sha256sum --check"): _run(_FIRST),
    ("docs/operations.md", "docker compose run --rm keys rm"): _run(_FIRST),
    ("docs/operations.md", "docker compose exec database psql"): _run(
        "tests/faults/server/test_erased_bytes.py"
    ),
    ("docs/operations.md", "umask 077\nfrankly backup create backup.zip"): _run(_DRILLS),
    ("docs/operations.md", "umask 077\nmkdir drill"): _run(_DRILLS),
    ("docs/operations.md", "frankly keys rotate --publisher"): _run(_DRILLS),
    ("docs/protocol.md", "frankly/0123456789abcdef"): _shown(
        "tests/vectors/test_vectors.py", "a format; the vectors contain its bytes"
    ),
    ("docs/reproduce.md", "python -m papers --list"): _shown(
        "tests/papers/figures/test_command.py", "takes hours; the test runs the quick form"
    ),
    ("docs/scaling.md", "FOLDER/manifest.json"): _shown(
        "tests/frankly_server/scale/test_export.py", "names of files"
    ),
    ("docs/sdk.md", "from frankly_sdk import Client"): _run(_SDK),
    ("docs/sdk.md", "from frankly_sdk import AlreadyAnswered"): _run(_SDK),
    ("docs/sdk.md", "from frankly_sdk.testing import FakeServer"): _run(_SDK),
}
"""(Page, start of a block's first line) → treatment of the block."""
