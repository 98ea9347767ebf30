# SPDX-License-Identifier: Apache-2.0
"""Constructions of the papers that are measured against and never published."""
