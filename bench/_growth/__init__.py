# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/growth.py: running time as a function of the size of the input."""
