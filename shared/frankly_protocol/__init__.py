# SPDX-License-Identifier: Apache-2.0
"""What the server and the devices agree on, to the bit: stdlib and `cryptography` only.

Orientation everywhere: ``weights[x][y]``, row = truth, column = report.
"""

__version__ = "0.1.0"
