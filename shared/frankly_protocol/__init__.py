# SPDX-License-Identifier: Apache-2.0
"""The protocol shared by server and devices, exact to the bit.

Needs the stdlib and `cryptography` only. Orientation everywhere: ``weights[x][y]``, row = truth,
column = report.
"""

__version__ = "0.1.0"
