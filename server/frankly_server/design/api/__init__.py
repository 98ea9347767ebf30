# SPDX-License-Identifier: Apache-2.0
"""Requests and results of the design engine: a certified mechanism with its figures.

`engine.design` runs all the steps; `kinds` and `decoded` hold figures of any kind of mechanism;
`frankly_server.requests` reads and writes JSON.
"""
