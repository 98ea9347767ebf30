# SPDX-License-Identifier: Apache-2.0
"""Randomising mechanisms as integers: one file per runtime kind."""

from frankly_protocol.mechanisms.dense import DenseMechanism

__all__ = ["DenseMechanism"]
