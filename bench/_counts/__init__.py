# SPDX-License-Identifier: Apache-2.0
"""Parts of the counts bench."""
