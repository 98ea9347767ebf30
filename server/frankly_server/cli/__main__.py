# SPDX-License-Identifier: Apache-2.0
"""`python -m frankly_server.cli`, for where no script was installed."""

from frankly_server.cli.front import main

main()
