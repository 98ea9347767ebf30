# SPDX-License-Identifier: Apache-2.0
"""Parts of `bench/verify.py`: documents at the limit of the work budget, in both languages."""
