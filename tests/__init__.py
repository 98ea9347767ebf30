# SPDX-License-Identifier: Apache-2.0
"""Tests of all packages. Each test process uses one thread for linear algebra, as the server does."""

# The package limits the threads when it is imported, which must be before numpy. With more threads
# than free cores, operations on the designer's small matrices take several times as long.
import frankly_server  # noqa: F401
