# SPDX-License-Identifier: Apache-2.0
"""The demo under its first name; what it does is in `examples.demo`."""

import sys

from examples.demo.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
