# SPDX-License-Identifier: Apache-2.0
"""The parts of the design engine's bench, one module per item of its table."""
