# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/form.py."""

import os

# Each process of the bench has one core; numpy reads these variables only when first imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
