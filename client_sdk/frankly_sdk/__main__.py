# SPDX-License-Identifier: Apache-2.0
"""Entry point: ``python -m frankly_sdk`` runs the command frankly-sdk."""

import sys

from frankly_sdk.cli import main

sys.exit(main())
