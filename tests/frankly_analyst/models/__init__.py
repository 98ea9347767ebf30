# SPDX-License-Identifier: Apache-2.0
"""Tests of weights, and of models of noisy counts."""
