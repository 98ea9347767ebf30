# SPDX-License-Identifier: Apache-2.0
"""Making a release: wheels, source archives, checksums, bill of materials."""
