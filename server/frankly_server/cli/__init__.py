# SPDX-License-Identifier: Apache-2.0
"""Command line `frankly`, for admins, analysts and operators."""

from frankly_server.cli.front import main

__all__ = ["main"]
