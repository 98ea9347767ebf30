# SPDX-License-Identifier: Apache-2.0
"""Packages for complex samples read the tables of the demo and give the server's figures."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas
import pytest
from statsmodels.stats.weightstats import DescrStatsW

pytestmark = pytest.mark.full_only
TABLES = ("visits", "health", "limitation,health")
R = """
suppressPackageStartupMessages(library(survey))
rows <- read.csv(commandArgs(TRUE)[1], na.strings = "")
names <- commandArgs(TRUE)[-1]
design <- svydesign(ids = ~1, weights = ~1, data = rows)
means <- svymean(as.matrix(rows[names]), design)
cat(sprintf("%.17g %.17g", coef(means), SE(means)), sep = "\\n")
"""


def _run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Mapping[str, str]:
    """Environment of the server of a demo with 600 respondents."""
    folder = tmp_path_factory.mktemp("demo")
    # The demo makes its home anew, so it cannot be the working directory.
    home = folder / "home"
    words = ("workplace", "--respondents", "600", "--home", str(home))
    _run(sys.executable, "-m", "examples.demo", *words, cwd=folder, PYTHONPATH=str(root))
    return {"FRANKLY_HOME": str(home / "server"), "PYTHONPATH": str(root)}


@pytest.fixture(scope="module", params=TABLES)
def case(
    request: pytest.FixtureRequest,
    demo: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[str], list[dict[str, Any]]]:
    """One row for each report as CSV, the columns of the scores, and the server's rows for them."""
    folder, frankly = (
        tmp_path_factory.mktemp("table"),
        str(Path(sys.executable).with_name("frankly")),
    )
    words = ("workplace", "--questions", request.param)
    _run(frankly, "counts", "table", *words, "--expand", "--out", "rows.csv", cwd=folder, **demo)
    names = request.param.split(",")
    options = [word for name in names[len(names) == 1 :] for word in ("--crosstab", name)]
    shown = _run(frankly, "estimates", "workplace", *options, "--result", cwd=folder, **demo)
    result = json.loads(shown)
    (rows,) = [q["rows"] for q in result["questions"] if q["id"] == " × ".join(names)]
    header = (folder / "rows.csv").read_text().partition("\n")[0].split(",")
    return folder / "rows.csv", header[-len(rows) :], rows


def _agrees(found: list[tuple[float, float]], rows: list[dict[str, Any]]) -> None:
    assert [mean for mean, _ in found] == pytest.approx([r["estimate"] for r in rows], abs=1e-12)
    assert [se for _, se in found] == pytest.approx([r["se"] for r in rows], rel=1e-6)


def test_survey_in_r(case: tuple[Path, list[str], list[dict[str, Any]]], tmp_path: Path) -> None:
    file, names, rows = case
    assert shutil.which("Rscript") is not None, "apt-get install r-cran-survey"
    script = tmp_path / "means.R"
    script.write_text(R)
    printed = _run("Rscript", str(script), str(file), *names, cwd=tmp_path, LC_ALL="C.UTF-8")
    _agrees([tuple(map(float, line.split())) for line in printed.split("\n") if line], rows)


def test_svy(case: tuple[Path, list[str], list[dict[str, Any]]]) -> None:
    # Not imported by name: svy is there only under `--full`, and has types of its own.
    polars, svy = import_module("polars"), import_module("svy")
    file, names, rows = case
    frame = polars.read_csv(file).with_columns(polars.lit(1.0).alias("weight"))
    sample = svy.Sample(frame, svy.Design(wgt="weight"))
    found = [sample.estimation.mean(name).to_dicts()[0] for name in names]
    _agrees([(one["est"], one["se"]) for one in found], rows)


def test_statsmodels(case: tuple[Path, list[str], list[dict[str, Any]]]) -> None:
    file, names, rows = case
    found = DescrStatsW(pandas.read_csv(file)[names], ddof=1)
    _agrees(list(zip(found.mean, found.std_mean, strict=True)), rows)
