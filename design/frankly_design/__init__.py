# SPDX-License-Identifier: Apache-2.0
"""The mathematics of Frankly: designs, measures, exact rounding, estimates; no server, no clock.

Every privacy notion except dp is a cone (`notions.cones`), whose extreme rays (`numeric.rays`) are
the columns of optimal mechanisms. A linear or convex programme over these columns (`optimum`) finds
an optimum, and `tables.quantise` rounds it to integers that the exact verifier accepts.
`engine.design` runs all steps; `estimate` makes unbiased shares of the reports' counts.
"""

import os

# Matrices are small, and processes share the cores: on a busy machine, waiting BLAS threads made a
# design 50 times slower. The variable has an effect only if it is set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
