# SPDX-License-Identifier: Apache-2.0
"""Privacy notions, each declared once: its levels, its claims, its cone and its sentence.

`notion` says what a declaration contains, `registry` finds it by its name.
"""
