# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/estimate.py; the coverage tests run them at smaller counts."""
