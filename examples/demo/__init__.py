# SPDX-License-Identifier: Apache-2.0
"""The main job, end to end, on real answers to real surveys: see `python -m examples.demo --help`."""
