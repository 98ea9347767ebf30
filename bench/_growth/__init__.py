# SPDX-License-Identifier: Apache-2.0
"""Parts of the bench of growth: how each piece of work gets longer as what it works on gets larger."""
