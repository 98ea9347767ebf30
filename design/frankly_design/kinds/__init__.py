# SPDX-License-Identifier: Apache-2.0
"""Mechanism kinds: for each, one class that counts reports, decodes them and knows their figures.

A document says `dense, unary, subset, product` or `agreement`. On the side of the protocol each is a
class in `frankly_protocol.mechanisms`; here it is a class in a file of its name, listed in `registry`.
"""
