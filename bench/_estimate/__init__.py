# SPDX-License-Identifier: Apache-2.0
"""What bench/estimate.py measures, and what the tests of coverage run at smaller counts."""
