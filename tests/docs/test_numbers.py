# SPDX-License-Identifier: Apache-2.0
"""Numbers in docs/choosing.md and docs/comparison.md, recomputed.

The files docs/examples/mismatch/*.json are complete runs of `python -m examples.workplace.mismatch
--pilots 20 --json`. The tests repeat the design for the first pilot of each file, or with --full
for all pilots.
"""

import json
import math
import re
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from examples.demo.surveys import SURVEYS
from examples.workplace import mismatch
from tools.blocks import blocks

FRAMES = ("everybody", "clinic")


def stored(root: Path, frame: str) -> dict[str, Any]:
    return dict(json.loads((root / "docs/examples/mismatch" / f"{frame}.json").read_text()))


def text(root: Path) -> str:
    return (root / "docs" / "choosing.md").read_text(encoding="utf-8")


def test_levels_in_words(root: Path) -> None:
    rows = re.findall(r"^\| ([\d.]+) \| × ([\d.]+) \| (\d+)% \|$", text(root), re.MULTILINE)
    assert len(rows) == 5
    for level, odds, truth in rows:
        E = math.exp(float(level))
        assert E <= float(odds) == pytest.approx(E, rel=5e-3), "a bound rounds up"
        assert int(truth) == round(100 * E / (1 + E))


def test_the_tables_equal_those_of_the_runs(root: Path) -> None:
    tables = [block.body for block in blocks(text(root)) if block.language == "text"]
    assert tables == [mismatch.as_text(stored(root, frame)) for frame in FRAMES]


@pytest.mark.parametrize("frame", [FRAMES[0], pytest.param(FRAMES[1], marks=pytest.mark.full_only)])
def test_a_run_is_the_same_again(root: Path, frame: str, full: bool) -> None:
    run = stored(root, frame)
    pilots = 20 if full else 1
    again = mismatch.rounds(pilots, run["people"], frame, clock=lambda: 0.0)
    assert len(again) == 3 * pilots
    for outcome, before in zip(again, run["rounds"], strict=False):
        assert outcome.name == before["name"]
        assert outcome.realised == pytest.approx(before["realised"], rel=1e-4)
        assert outcome.information == pytest.approx(before["information"], rel=1e-4)


def test_sentences_about_the_runs(root: Path) -> None:
    trusting, robust, capped = stored(root, "everybody")["mechanisms"]
    assert trusting["broken"] > 10
    assert robust["broken"] == 0
    assert robust["information"] == pytest.approx(0.75 * trusting["information"], abs=0.03)
    assert capped["largest"] < trusting["largest"]
    lines = stored(root, "clinic")["mechanisms"]
    assert lines[1]["broken"] > 0
    assert lines[2]["largest"] <= float(stored(root, "clinic")["cap"])


def test_realised_is_the_definition(root: Path) -> None:
    """The result is compared with a computation on whole tables, for mechanisms over pairs and over
    answers."""
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 50, (2, 3))
    for rows in (3, 6):
        weights = rng.integers(1, 100, (rows, 4))
        P = (truth / truth.sum(axis=1, keepdims=True))[:, :, None]
        Q = weights.reshape(2, 3, 4) if rows == 6 else np.broadcast_to(weights, (2, 3, 4))
        report_given_secret = (P * Q).sum(axis=1)
        expected = np.abs(np.log(report_given_secret[0] / report_given_secret[1])).max()
        assert mismatch.realised(weights.tolist(), truth.tolist()) == pytest.approx(expected)
    assert mismatch.realised([[1, 0], [0, 1]], [[1, 0], [0, 1]]) == math.inf


def test_answering_nine_times(root: Path) -> None:
    truth = math.e / (1 + math.e)
    nine = sum(math.comb(9, k) * truth**k * (1 - truth) ** (9 - k) for k in range(5, 10))
    assert f"right with {truth:.0%}, from nine independent ones with {nine:.0%}" in text(root)


def test_effect_of_one_percent_of_fakes(root: Path) -> None:
    """The bias is beta/(1 - beta) times the largest score if the true share is 0."""
    sentence = re.search(
        r"yes/no share by ([\d.]+) points at ε = 1, and that of one choice\s+among 16 by ([\d.]+)",
        text(root),
    )
    assert sentence is not None
    for choices, percent in zip((2, 16), sentence.groups(), strict=True):
        p, q = math.e / (math.e + choices - 1), 1 / (math.e + choices - 1)
        assert float(percent) == pytest.approx(100 * 0.01 / 0.99 * (1 - q) / (p - q), abs=0.05)


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md"])
def test_number_of_respondents_in_the_demo(root: Path, page: str) -> None:
    _, respondents = next(iter(SURVEYS.values())).split()
    content = (root / page).read_text(encoding="utf-8")
    content = re.sub("[Oo]f 100 people", "", content)  # those of a survey's label
    counts = re.findall(r"([\d,]+) (?:devices|people)\b", content)
    assert set(counts) == {f"{len(respondents):,}"}


def test_precision_that_the_readme_states(root: Path) -> None:
    """The margin of a yes/no share is largest at an even share."""
    page = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    truth = math.e / (1 + math.e)
    margins = [
        100 * NormalDist().inv_cdf(0.975) * math.sqrt(1 / 4 / n) / (2 * truth - 1)
        for n in (500, 5000)
    ]
    stated = "±{:.1f} percentage points from 500 respondents, ±{:.1f} from 5,000".format(*margins)
    assert f"a yes/no share at ε = 1 is known to {stated}" in page
    bound = math.ceil(100 * math.e) / 100
    assert f"you can move by more than that factor: {bound} at ε = 1" in page
