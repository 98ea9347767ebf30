# SPDX-License-Identifier: Apache-2.0
"""The demo's prior: affair (yes or no) by rating of the marriage, Redbook survey of 1974."""

import importlib
import sys
from pathlib import Path

from frankly_server.design import Prior

SECRETS = ("no", "yes")
ANSWERS = ("very-poor", "poor", "fair", "good", "very-good")


def prior() -> Prior:
    """Return the joint counts of the public pilot, as in the demo's survey."""
    root = str(Path(__file__).resolve().parents[2])
    if root not in sys.path:
        sys.path.append(root)  # `examples` is not an installed package
    data = importlib.import_module("examples.affairs.data")
    pilot, _ = data.split()
    return Prior.from_rows(
        [data.counts(pilot, "rate_marriage", ANSWERS, affair=secret) for secret in SECRETS]
    )
