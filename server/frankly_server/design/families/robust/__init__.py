# SPDX-License-Identifier: Apache-2.0
"""Explicit mechanisms of the Robust paper for an uncertain distribution of (S, U).

The paper's non-robust optimum is the notion secret-ldp over answers (s, u) with the prior
`promises.pairs(prior)`; its PolyOpt is the optimum over rldp with `diagonal`.
"""
