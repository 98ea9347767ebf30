# SPDX-License-Identifier: Apache-2.0
"""The protocol shared by server and devices, exact to the bit.

It needs only the standard library and `cryptography`. Tables of weights are always
``weights[x][y]``: a row is a true answer x, a column is a report y.
"""

__version__ = "0.1.0"
