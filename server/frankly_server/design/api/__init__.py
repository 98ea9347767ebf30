# SPDX-License-Identifier: Apache-2.0
"""Requests and results of the design engine: JSON in, a certified mechanism with its figures out.

`engine.design` runs all the steps; `design_json` and `measure_json` read and write the command's
JSON; `kinds` and `decoded` hold figures of any kind of mechanism.
"""
