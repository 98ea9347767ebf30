# SPDX-License-Identifier: Apache-2.0
"""Limits of a form, and how the true answers to its questions are written."""

from collections.abc import Mapping
from typing import Final

MAX_QUESTIONS: Final = 100
MAX_PARTS: Final = 400
MAX_GROUPED: Final = 4
"""Largest number of questions that act as one part."""
MAX_COMPONENTS: Final = 256
MAX_SCORE: Final = 8
MAX_CHOICES: Final = 2000
"""Largest number of choices of all questions together."""
MAX_CELLS: Final = 1 << 20
"""Largest number of cells of a form, which bounds the time to explain the form and to draw from it."""
MOST_CHOICES: Final = 64
CELLS_PER_SCORE: Final = 8  # entries of score tables have thousands of bits

Truth = tuple[int, ...] | Mapping[int, int]
"""Positions of the true choices by question; of the questions that nobody reads, none is needed."""
