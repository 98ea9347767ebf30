# SPDX-License-Identifier: Apache-2.0
"""An enumerator's day without network."""
