# SPDX-License-Identifier: Apache-2.0
"""A survey in the terminal."""
