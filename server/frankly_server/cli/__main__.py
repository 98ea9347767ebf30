# SPDX-License-Identifier: Apache-2.0
"""`python -m frankly_server.cli`, for environments without the installed script."""

from frankly_server.cli.front import main

main()
