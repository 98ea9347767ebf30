# SPDX-License-Identifier: Apache-2.0
"""Politics in three attributes at once: the American National Election Study of 1996."""
