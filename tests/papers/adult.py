# SPDX-License-Identifier: Apache-2.0
"""Path of the Adult data, which is not in the repository."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult.csv"
