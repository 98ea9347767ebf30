# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/analyst.py; the tests run them at smaller counts."""
