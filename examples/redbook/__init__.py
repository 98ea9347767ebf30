# SPDX-License-Identifier: Apache-2.0
"""All nine items of the Redbook survey of 1974, asked under one level."""
