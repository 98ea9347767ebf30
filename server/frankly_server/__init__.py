# SPDX-License-Identifier: Apache-2.0
"""The server of Frankly."""

import os

# Matrices are small, and processes share the cores: on a busy machine, waiting BLAS threads made a
# design 50 times slower. The variable has an effect only if it is set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
