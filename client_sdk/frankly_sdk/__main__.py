# SPDX-License-Identifier: Apache-2.0
"""python -m frankly_sdk is frankly-sdk."""

import sys

from frankly_sdk.cli import main

sys.exit(main())
