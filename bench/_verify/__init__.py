# SPDX-License-Identifier: Apache-2.0
"""The parts of `bench/verify.py`: documents at the limit of the work budget, and what they cost in both languages."""
