# SPDX-License-Identifier: Apache-2.0
"""Example surveys end to end, with real answers: see `python -m examples.demo --help`."""
