# SPDX-License-Identifier: Apache-2.0
"""Health at work: the RAND Health Insurance Experiment, with a secret outside the questions."""
