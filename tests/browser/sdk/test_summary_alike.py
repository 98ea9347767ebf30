# SPDX-License-Identifier: Apache-2.0
"""What an admin reads before publishing is what respondents read: on a Python device, and on the page.

The admin's summary is compared with two devices that have verified the signed document by themselves.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import ReportLevel
from frankly_protocol.explanation.explain import Explanation, explain
from frankly_server.surveys import summary
from frankly_server.surveys.summary import summary_of
from playwright.sync_api import Page

from tests.browser.sdk.summaries import Summarised, of_device, of_summary, random_summaries
from tests.browser.sdk.wire import program

pytestmark = pytest.mark.usefixtures("shared_page")
READ = program("read")


@cache
def _some() -> list[Summarised]:
    return list(random_summaries(12))


@pytest.mark.slow
def test_admins_and_respondents_read_the_same(page: Page, tmp_path: Path, full: bool) -> None:
    surveys = list(random_summaries(200 if full else 40))
    shown = page.evaluate(READ, [one.payload for one in surveys])
    for one, on_page in zip(surveys, shown, strict=True):
        said = of_summary(one.summary.read)
        assert said == of_device(one.on_device(tmp_path / f"{one.seed}.db")), one.seed
        assert said == on_page, one.seed
        assert of_summary(summary.read_texts(one.document)) == said
    # The surveys differ in what has to be said.
    texts = json.dumps([of_summary(one.summary.read) for one in surveys], ensure_ascii=False)
    for words in ("just as you give it", "One item only checks", "Chance picks", "can become", "almost sure",
                  "Whoever invited you", "hints at it", "holds as long as", "Von 100", "这份", "من"):  # fmt: skip
        assert words in texts, words


def _reworded(told: Explanation) -> Explanation:
    return replace(told, summary=(told.summary[0].replace(".", "!"), *told.summary[1:]))


def _without_a_bound(told: Explanation) -> Explanation:
    return replace(told, overall=told.overall[:-1])


def _about_others(told: Explanation) -> Explanation:
    names = told.consequences[-1].names
    return replace(told, consequences=tuple(replace(one, names=names) for one in told.consequences))


def _without_secrets(*arguments: Any) -> Explanation:
    document, level, *others = arguments
    known: ReportLevel = replace(level, secrets={})
    return explain(document, known, *others)


def _in_english(document: Any, level: ReportLevel, keys: Any, *_: Any) -> Explanation:
    last = document.languages[-1]
    return explain(document, level, keys, last)


FAULTS: dict[str, Callable[..., Explanation]] = {
    "a sentence is worded otherwise": lambda *of: _reworded(explain(*of)),
    "the last bound is left out": lambda *of: _without_a_bound(explain(*of)),
    "a secret is left out": _without_secrets,
    "numbers stand at other questions": lambda *of: _about_others(explain(*of)),
    "another language is shown": _in_english,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_summary_that_differs_is_found(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = {one.seed: of_device(one.on_device(tmp_path / f"{one.seed}.db")) for one in _some()}
    monkeypatch.setattr(summary, "explain", FAULTS[fault])
    assert any(
        of_summary(summary_of(one.document, 1000).read) != devices[one.seed] for one in _some()
    )
