# SPDX-License-Identifier: Apache-2.0
"""`frankly`: the one command of admins, analysts and operators."""

from frankly_server.cli.front import main

__all__ = ["main"]
