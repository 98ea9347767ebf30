# SPDX-License-Identifier: Apache-2.0
"""Constructions as the papers print them, which break what they promise: measured against, never published."""
