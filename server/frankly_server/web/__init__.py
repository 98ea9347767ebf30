# SPDX-License-Identifier: Apache-2.0
"""HTTP layer on Flask: each view parses a request, calls one service and renders the result."""
