# SPDX-License-Identifier: Apache-2.0
"""Numbers: exact rationals and rays, types of arrays, and numerical libraries that load late."""
