# SPDX-License-Identifier: Apache-2.0
"""Health at work: the RAND Health Insurance Experiment, with a secret that is not always asked."""
