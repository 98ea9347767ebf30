# SPDX-License-Identifier: Apache-2.0
"""Reproduction of the papers' figures: numbers and plots from Frankly's mechanisms, compared with the papers' text.

If a paper is wrong or ambiguous (docs/maths), the figure shows the corrected form, and the printed form as a separate
curve named "as printed". `printed` contains the algorithms for such curves; no other code may use
them.
"""
