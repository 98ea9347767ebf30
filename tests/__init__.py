# SPDX-License-Identifier: Apache-2.0
"""Tests of all packages. Each test process uses one thread for linear algebra, as the server does."""

import os

# These variables must be set before numpy is imported, because it reads them only once. With more
# threads than free cores, operations on the designer's small matrices take several times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
