# SPDX-License-Identifier: Apache-2.0
"""The tests. Each of their processes computes with one thread, as the server does."""

import os

# Before numpy is imported, which reads it once. With more threads than free cores, the small matrices
# of the designer take several times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
