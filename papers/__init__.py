# SPDX-License-Identifier: Apache-2.0
"""The papers' figures made again: numbers and plots from the mechanisms of this package, beside what the text prints.

Where a paper is wrong or ambiguous (docs/maths), the corrected form is the figure, and the printed form a curve of its
own, named "as printed". `printed` holds the algorithms that only such curves need; nothing else may use them.
"""
