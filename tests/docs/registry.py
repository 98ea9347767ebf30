# SPDX-License-Identifier: Apache-2.0
"""Treatment of every fenced block of the documentation: run, compared with new output, or only
shown.

Pages in FOLLOWED run from start to end: a block that is not a command, a file or an output fails.
Blocks of other pages are listed below by page and first line; test_every_block.py finds missing
entries.
"""

from typing import Final, NamedTuple

FOLLOWED: Final = {
    "docs/first_survey.md": "tests/deploy/test_first_survey.py",
    "docs/tour.md": "tests/docs/test_guides.py",
    "docs/embed.md": "tests/docs/test_guides.py",
    "docs/run_a_survey.md": "tests/docs/test_guides.py",
    "docs/analyse.md": "tests/docs/test_guides.py",
    "docs/first_hour_analyst.md": "tests/docs/test_first_hour.py",
    "docs/manage.md": "tests/docs/test_manage.py",
    "docs/notebooks/first_estimates.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/tables_and_evidence.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/weights_and_a_model.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/comparisons.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/validity.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/regression_on_public_data.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/survey_packages.md": "tests/frankly_analyst/test_notebooks.py",
    "docs/notebooks/survey_packages_r.md": "tests/frankly_analyst_r/test_notebook.py",
    "docs/notebooks/optimal_mechanisms.md": "tests/frankly_design/test_notebooks.py",
}
"""Page → the test that follows it from its first block to its last."""


class Fate(NamedTuple):
    """Treatment of a block, the test that checks the block (or an equivalent), and the reason if it
    is only shown."""

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
GUIDES: Final = _run(_GUIDES)
"""Fate of blocks of pages that `test_guides` runs after following the guides."""
_FIRST: Final = "tests/deploy/test_first_start.py"

_LINES: Final = _shown(
    "tests/deploy/test_first_survey.py", "its lines are lines of docs/first_survey.md, which runs"
)

BLOCKS: Final[dict[tuple[str, str], Fate]] = {
    ("README.md", "python3 run.py demo"): _LINES,
    ("README.md", ".venv/bin/frankly survey apply"): _LINES,
    ("README.md", "from frankly_sdk import Client"): _LINES,
    ("README.md", "from frankly_analyst import Analyst"): _LINES,
    ("CONTRIBUTING.md", "python3 run.py quick"): _shown(
        "tests/deploy/test_checks.py", "the checks are tests"
    ),
    ("docs/survey_file.md", "name: smoking"): _run(
        "tests/frankly_server/surveys/test_file_schema.py"
    ),
    ("docs/survey_file.md", "name: cash"): _run("tests/frankly_server/surveys/test_file_schema.py"),
    ("docs/do_people_answer.md", "name: fines"): _run("tests/docs/test_do_people_answer.py"),
    ("docs/do_people_answer.md", 'echo \'{"choices"'): _run("tests/docs/test_do_people_answer.py"),
    ("docs/admin.md", "blocks:"): _run("tests/frankly_server/surveys/test_anchors.py"),
    ("docs/admin.md", ",no,yes"): _run("tests/frankly_server/surveys/test_protection.py"),
    ("docs/admin.md", "FRANKLY_WEBHOOK_HOSTS="): _run(_HERE),
    ("docs/admin.md", "POST /frankly HTTP/1.1"): _made(_HERE),
    ("docs/operations.md", 'eval "$(_FRANKLY_COMPLETE'): _shown(
        "tests/frankly_server/cli/test_front.py",
        "a line for the start of a shell, which the test runs",
    ),
    ("docs/browser.md", '<script type="module" src="/frankly/element.js">'): _run(_BROWSER),
    ("docs/browser.md", '<script type="importmap">'): _made(_BROWSER),
    ("docs/browser.md", 'import "@frankly/sdk/element";'): _run(_BROWSER),
    ("docs/browser.md", 'import { Client } from "@frankly/sdk";'): _run(_BROWSER),
    ("docs/browser.md", "import * as ed25519"): _run(_BROWSER),
    ("docs/browser.md", "import { createElement, useEffect, useRef }"): _run(_BROWSER),
    ("docs/hosts.md", '<script type="module" src="/frankly/element.js">'): _run(_BROWSER),
    ("docs/hosts.md", "const survey = document.querySelector"): _run(_BROWSER),
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
    ("docs/design.md", "import frankly_design as fd"): _run(_DESIGN),
    **{
        ("docs/library.md", start): _run("tests/docs/test_library.py")
        for start in (
            "import frankly_design as fd",
            "capped = ",
            "import pandas as pd",
            "import numpy as np",
            "people = ",
            "difference = ",
            "import time",
            "try:",
            "questions = ",
        )
    },
    ("docs/counts.md", "GET /v1/surveys/ID/counts?"): _made(_HERE),
    ("docs/counts.md", "from frankly_analyst import Analyst"): _run(
        "tests/frankly_analyst/test_counts.py"
    ),
    ("docs/counts.md", "frankly counts table"): _made("tests/frankly_analyst/test_score_table.py"),
    ("docs/counts.md", "version,region"): _made("tests/frankly_analyst/test_score_table.py"),
    ("docs/models.md", "import json"): _run("tests/frankly_analyst/models/test_guide.py"),
    ("docs/models.md", "smokes: 4800 reports"): _made("tests/frankly_analyst/models/test_guide.py"),
    ("docs/spec/8-estimates.md", '{"survey": "…"'): _made("tests/frankly_analyst/test_counts.py"),
    ("docs/estimates.md", "GET /v1/surveys/ID/estimates?"): _made(_HERE),
    ("docs/estimates.md", "frankly estimates SURVEY --by"): _shown(
        "tests/frankly_server/cli/test_estimates.py", "needs a survey with these groups"
    ),
    ("docs/results.md", "from frankly_analyst import Analyst"): _run(_GUIDES),
    ("docs/estimates.md", "from frankly_analyst import Analyst"): _run(_GUIDES),
    ("docs/results.md", "estimates = Analyst(url, key).estimates(survey, by="): _run(_GUIDES),
    ("docs/results.md", "for form in Analyst(url, key)"): _run(_GUIDES),
    ("docs/results.md", "for row in Analyst(url, key)"): _run(_GUIDES),
    ("docs/results.md", "estimates = Analyst(url, key).estimates(survey)"): _run(_GUIDES),
    ("docs/results.md", "sources = Analyst(url, key)"): _run("tests/contract/test_sources.py"),
    ("docs/results.md", "import pandas"): _run("tests/frankly_analyst/test_formats.py"),
    ("docs/results.md", "rows <- read.csv("): _shown(
        "tests/frankly_analyst/test_formats.py", "needs R; the test does the same with pandas"
    ),
    ("docs/estimates.md", 'echo \'{"prior":{"joint":[[1'): _run(_HERE),
    ("docs/results.md", 'echo \'{"prior":{"joint":[[7'): _run(_HERE),
    ("docs/results.md", "from frankly_analyst.models.waves import changes"): _shown(
        "tests/frankly_analyst/models/test_waves.py", "needs the surveys of several waves"
    ),
    ("docs/maths/waves.md", 'echo \'{"prior":{"joint":[[7'): _shown(
        _HERE, "the test runs the same command of the page of results"
    ),
    ("docs/estimates.md", 'echo \'{"blocks"'): _run(_HERE),
    ("docs/estimates.md", 'echo \'{"choices"'): _run(_HERE),
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
    ("docs/operations.md", "umask 077\ndocker compose run --rm -T keys tar"): _run(_DRILLS),
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
    ("docs/sdk.md", "import asyncio"): _run(_SDK),
    ("docs/sdk.md", "from examples.issuer import Issuer"): _run(_SDK),
    ("docs/browser.md", "const plan = await client.plan(), { survey } = client.view(plan);"): _run(
        "tests/browser/sdk/test_arms.py"
    ),
    ("docs/browser.md", "import { blind, finalize }"): _run("tests/browser/sdk/test_blind.py"),
    ("docs/web_frameworks.md", "import { FranklySurvey } from"): _shown(
        "tests/browser/stacks/test_examples.py", "the example for React does the same"
    ),
    ("docs/web_frameworks.md", "<script setup>"): _shown(
        "tests/browser/stacks/test_examples.py", "the example for Vue does the same"
    ),
    ("docs/web_frameworks.md", "import { Model } from"): _shown(
        "tests/browser/stacks/test_examples.py", "the example for SurveyJS does the same"
    ),
    **{
        ("docs/stacks.md", start): _run("tests/docs/test_stacks.py")
        for start in ("import os\nfrom getpass", "client.answer(", "from frankly_sdk import aio")
    },
    **{
        ("docs/stacks.md", f"# {name}.py"): _run("tests/docs/test_stacks.py")
        for name in (
            "flask_app",
            "kiosk/urls",
            "fastapi_app",
            "survey_views",
            "desktop_app",
            "start",
        )
    },
}
"""(Page, start of a block's first line) → treatment of the block."""
