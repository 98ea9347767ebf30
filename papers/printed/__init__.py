# SPDX-License-Identifier: Apache-2.0
"""Constructions as the papers print them, which break their promises: only for comparison, never published."""
