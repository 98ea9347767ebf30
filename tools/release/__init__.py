# SPDX-License-Identifier: Apache-2.0
"""Build a release: wheels, source archives, checksums, bill of materials."""
