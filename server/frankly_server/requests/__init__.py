# SPDX-License-Identifier: Apache-2.0
"""JSON requests of `frankly design|measure|estimate|plan|verify` and `POST /v1/plan` (spec 1.9).

Each is declared as a model that reads it and describes it; `levels`, `explicit` and `fields` hold
what survey files share with them.
"""
