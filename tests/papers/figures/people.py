# SPDX-License-Identifier: Apache-2.0
"""Small data file with the columns of Adult and made-up people."""

from pathlib import Path

import numpy as np

VALUES = {
    "workclass": ["Private", "?"],
    "education": ["10th", "Bachelors", "HS-grad", "Masters"],
    "marital-status": ["Divorced", "Married", "Never-married"],
    "occupation": ["?", "Sales", "Tech-support", "Transport"],
    "relationship": ["Husband", "Other-relative", "Unmarried", "Wife"],
    "race": ["Black", "Other", "White"],
    "sex": ["Female", "Male"],
    "native-country": ["?", "Cuba", "United-States"],
    "income": ["<=50K", ">50K"],
}


def write_people(file: Path, rows: int = 400) -> Path:
    """Write a file of people whose columns depend on each other, so that every answer depends on
    every secret."""
    rng = np.random.default_rng(11)
    lines = [",".join(VALUES)]
    for _ in range(rows):
        leaning = rng.beta(0.7, 0.7)
        cells = [
            values[int(rng.binomial(len(values) - 1, 0.15 + 0.7 * leaning))]
            for values in VALUES.values()
        ]
        lines.append(",".join(cells))
    file.write_text("\n".join(lines) + "\n")
    return file
