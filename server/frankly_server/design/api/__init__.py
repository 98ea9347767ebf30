# SPDX-License-Identifier: Apache-2.0
"""Requests and results of the design engine: a verified mechanism with its figures.

`engine.design` runs all steps. `kinds` computes figures of any kind of mechanism, and `decoded`
computes variances with the published decoder. `frankly_server.requests` reads and writes JSON.
"""
