# SPDX-License-Identifier: Apache-2.0
"""Tests. Each test process uses one thread for linear algebra, as the server does."""

import os

# Set before the import of numpy, which reads it once. With more threads than free cores, the
# designer's small matrices take several times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
