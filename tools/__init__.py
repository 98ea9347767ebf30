# SPDX-License-Identifier: Apache-2.0
"""Tools for work on the repository; no distribution contains them."""
