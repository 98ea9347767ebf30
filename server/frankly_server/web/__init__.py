# SPDX-License-Identifier: Apache-2.0
"""HTTP layer, the only package that imports Flask: parse, call one service, render."""
