# SPDX-License-Identifier: Apache-2.0
"""A plain HTML page with the browser SDK."""
