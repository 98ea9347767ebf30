# SPDX-License-Identifier: Apache-2.0
"""Weighted survey with fixed counts, computed by our code, and by R's survey package from single reports."""

import csv
import io
from itertools import product

import numpy as np
import pandas as pd
from frankly_analyst.models import weights as weighting
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.outcome import LINEAR, outcome
from frankly_analyst.models.sample import SIMPLE, STRATA, Sample, table
from frankly_analyst.models.weighted import estimate
from frankly_analyst.models.weights import Weights

REGION = {"n": 5000, "m": 3000, "s": 4000}
SEX = {"f": 6500, "w": 5500}
CELL = dict(
    zip(product(("n", "m", "s"), ("f", "w")), (2600, 2400, 1700, 1300, 2200, 1800), strict=True)
)
BASE = {"n": 1.5, "m": 0.7, "s": 2.25}
CHOICES = ("a", "b", "c")


def sample() -> Sample:
    """Return a sample with 12 strata, drawn by a mechanism with 3 answers and 4 symbols."""
    law = np.array([[6, 1, 1, 2], [1, 5, 2, 2], [1, 2, 6, 1]]) / 10
    rows = [
        dict(zip(("region", "sex", "age"), cell, strict=True))
        for cell in product("nms", "fw", ("young", "old"))
    ]
    counts = np.array([[(7 * h + 5 * y + h * y) % 23 + 3 for y in range(4)] for h in range(12)])
    return Sample(("q",), (table(law, rows, counts, CHOICES, prior=np.array([0.5, 0.3, 0.2])),))


def reports_csv(reports: Sample) -> str:
    """Return the decoded score of every symbol with its count, by stratum."""
    version = reports.versions[0]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["region", "sex", "age", "base", "d1", "d2", "d3", "count"])
    for (_, row), counts in zip(version.strata.iterrows(), version.counts, strict=True):
        for y, count in enumerate(counts):
            scores = [repr(float(v)) for v in version.decoder[:, y]]
            writer.writerow([row.region, row.sex, row.age, BASE[row.region], *scores, int(count)])
    return out.getvalue()


def designs(reports: Sample) -> dict[str, tuple[Weights | None, str]]:
    """Return the weights and sampling designs by their names in the R script."""
    base = weighting.given(reports, BASE, "region")
    cell = ("region", "sex")
    margins = {"region": REGION, "sex": SEX}
    return {
        "simple": (None, SIMPLE),
        "based": (base, SIMPLE),
        "strata": (base, STRATA),
        "post": (weighting.poststratify(reports, cell, CELL), SIMPLE),
        "post_based": (weighting.poststratify(reports, cell, CELL, base), SIMPLE),
        "post_strata": (weighting.poststratify(reports, cell, CELL, base), STRATA),
        "rake": (weighting.rake(reports, margins), SIMPLE),
        "linear_based": (weighting.rake(reports, margins, base, "linear"), SIMPLE),
        "raking_based": (weighting.rake(reports, margins, base), SIMPLE),
    }


def computed() -> dict[str, float]:
    """Return our numbers by their names in the R script's output."""
    reports, found = sample(), dict[str, float]()
    linear = outcome("q", CHOICES, LINEAR, None, None)
    for name, (weights, sampling) in designs(reports).items():
        made = estimate(reports, np.eye(3), CHOICES, weights, sampling)
        V = made.covariance
        found |= {f"{name} mean {t + 1}": row.estimate for t, row in enumerate(made.rows)}
        found |= {
            f"{name} covariance {i + 1}{j + 1}": V[i, j]
            for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        }
        model = fit_sample(
            reports, split("q ~ region + sex", ("region", "sex")), linear, weights=weights, sampling=sampling,
            scores=np.array([1.0, 0.0, 0.0]),
        )  # fmt: skip
        found |= {f"{name} coefficient {i + 1}": b for i, b in enumerate(model.beta)}
        found |= {f"{name} error {i + 1}": se for i, se in enumerate(model.errors())}
    return found


def read(text: str) -> dict[str, float]:
    """Read the R script's output."""
    return dict(pd.read_csv(io.StringIO(text)).itertuples(index=False, name=None))


OUT = np.array([[0.8, 0.2], [0.25, 0.75]])
COV = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
LAW = np.kron(OUT, COV)
ANSWERS = (("yes", "no"), ("never", "some", "often"))
