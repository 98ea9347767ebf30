# SPDX-License-Identifier: Apache-2.0
"""Seconds of one model over 10 public covariates, from few and from many reports."""

from functools import partial

import numpy as np
import pandas as pd
from _runner import Samples, ratios, timed, turns
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.outcome import outcome
from frankly_analyst.models.sample import Sample, table

from _analyst.surveys import grr

COVARIATES = [f"x{i}" for i in range(10)]
MANY, FEW = 1_000_000, 100_000
MORE = 100
"""The second run has this many times the reports in the same strata; its time must not be longer."""


def counted(n: int) -> Sample:
    """Return n reports by the values of 10 covariates, five of them with 2 values and five with 3."""
    rng = np.random.default_rng(3)
    values = [rng.integers(0, 2 + i % 2, n) for i in range(len(COVARIATES))]
    eta = -0.5 + 0.2 * sum((-1) ** i * v for i, v in enumerate(values))
    answer = (rng.random(n) > 1 / (1 + np.exp(-eta))).astype(int)
    law = grr(2, 2.0)
    report = (rng.random(n) < law[answer, 1]).astype(int)
    frame = pd.DataFrame(dict(zip(COVARIATES, values, strict=True))).assign(report=report)
    counts = frame.groupby([*COVARIATES, "report"]).size().unstack(fill_value=0)
    strata = counts.index.to_frame(index=False).map(lambda v: f"v{v}")
    return Sample(("q",), (table(law, strata, counts.to_numpy(), ("yes", "no")),))


def seconds() -> Samples:
    """Return the seconds of a logistic model of all covariates, and the ratio at 100 times the reports."""
    sides = split(f"q ~ {' + '.join(COVARIATES)}", COVARIATES)
    result = outcome("q", ("yes", "no"), None, None, None)
    many, few = counted(MANY), counted(FEW)
    version = many.versions[0]
    more = table(version.law, version.strata, version.counts * MORE, ("yes", "no"))
    trials = {
        "many": timed(partial(fit_sample, many, sides, result)),
        "few": timed(partial(fit_sample, few, sides, result)),
        "more": timed(partial(fit_sample, Sample(("q",), (more,)), sides, result)),
    }
    times = turns(trials, 3)
    return {
        "strata_of_1_million": [float(len(version.n))],
        "model_of_1_million_s": times["many"],
        "model_of_100_thousand_s": times["few"],
        "ratio_of_100_million_to_1_million": ratios(times["more"], times["many"]),
    }
