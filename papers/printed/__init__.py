# SPDX-License-Identifier: Apache-2.0
"""Constructions as printed in the papers, for comparison only: they break their promises."""
