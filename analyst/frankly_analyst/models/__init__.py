# SPDX-License-Identifier: Apache-2.0
"""Weights and models of noisy counts, from released counts alone.

This subpackage needs formulaic, numpy, pandas and scipy; the rest of the client does not.

>>> from frankly_analyst import models                             # doctest: +SKIP
>>> counts = analyst.counts("5f0c…", by="region,age")              # doctest: +SKIP
>>> weights = models.rake(counts, "drinks", totals)                # doctest: +SKIP
>>> print(models.weighted_shares(counts, "drinks", weights))       # doctest: +SKIP
>>> print(models.fit("drinks ~ region + age", counts))             # doctest: +SKIP
"""

from importlib.util import find_spec as _find_spec

_NEEDED = ("formulaic", "numpy", "pandas", "scipy")
for _name in _NEEDED:
    if _find_spec(_name) is None:
        raise ImportError(f"{_name} is missing: pip install {' '.join(_NEEDED)}", name=_name)

# The check comes first, so that the error for a missing package says how to install it.
# ruff: noqa: E402
from frankly_analyst.models.combined import Combined
from frankly_analyst.models.desk import (
    fit,
    given,
    poststratify,
    rake,
    weighted_mean,
    weighted_median,
    weighted_shares,
)
from frankly_analyst.models.effects import Effect, Effects
from frankly_analyst.models.left_out import LeftOut, LeftOutRow, left_out
from frankly_analyst.models.model import Coefficient, Fit, Model
from frankly_analyst.models.totals import Calibrated, calibrate, margins
from frankly_analyst.models.weighted import Weighted, WeightedRow
from frankly_analyst.models.weights import Weights

__all__ = [
    "Calibrated",
    "Coefficient",
    "Combined",
    "Effect",
    "Effects",
    "Fit",
    "LeftOut",
    "LeftOutRow",
    "Model",
    "Weighted",
    "WeightedRow",
    "Weights",
    "calibrate",
    "fit",
    "given",
    "left_out",
    "margins",
    "poststratify",
    "rake",
    "weighted_mean",
    "weighted_median",
    "weighted_shares",
]
