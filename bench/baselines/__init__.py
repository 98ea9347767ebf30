# SPDX-License-Identifier: Apache-2.0
"""The papers' constructions as baselines; the server never publishes them."""
