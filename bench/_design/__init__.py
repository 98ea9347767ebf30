# SPDX-License-Identifier: Apache-2.0
"""The parts of the design engine's bench, one module per item of its table."""

import os

# One core for every method compared; numpy reads these variables only when first imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
