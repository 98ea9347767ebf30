# SPDX-License-Identifier: Apache-2.0
"""The parts of `bench/mutation.py`: mutants of both languages, their tests, runs in forks, and stored survivors."""
