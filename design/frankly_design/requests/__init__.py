# SPDX-License-Identifier: Apache-2.0
"""JSON requests of `frankly design|measure|estimate|plan|verify` and `POST /v1/plan` (spec 1.9).

Each request has a model, which parses it and generates its JSON Schema. Survey files also use the
types of `levels`, `choices` and `fields`.
"""
