# SPDX-License-Identifier: Apache-2.0
"""Explicit mechanisms of the Robust paper for an uncertain distribution of (S, U).

The other mechanisms of the paper are optima under a notion. Its non-robust optimum is that under
secret-ldp over the answers (s, u), with the prior `notions.prior.pairs(prior)`. Its PolyOpt is the
optimum under rldp with `diagonal`.
"""
