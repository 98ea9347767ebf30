# SPDX-License-Identifier: Apache-2.0
"""The server of Frankly."""

import os

# Matrices are small here, and processes share the cores: threads of linear algebra that wait for each other made a
# design 50 times as slow on a busy machine. It works only if set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
