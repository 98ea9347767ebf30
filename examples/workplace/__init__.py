# SPDX-License-Identifier: Apache-2.0
"""Health at work: the RAND Health Insurance Experiment; only one block asks about the secret."""
