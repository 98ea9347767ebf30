# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/validity.py and bench/split.py."""

import os

# One core; numpy reads these variables only when first imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
