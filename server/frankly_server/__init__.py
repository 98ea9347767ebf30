# SPDX-License-Identifier: Apache-2.0
"""The server of Frankly."""

from frankly_design import numeric  # noqa: F401 - sets the number of threads before numpy is imported
