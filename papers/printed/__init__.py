# SPDX-License-Identifier: Apache-2.0
"""Constructions as the papers print them, for comparison only: they break their promises."""
