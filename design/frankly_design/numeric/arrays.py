# SPDX-License-Identifier: Apache-2.0
"""Type aliases for numpy arrays. Shapes are documented where the arrays are used."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
