# SPDX-License-Identifier: Apache-2.0
"""The Python interface: notions, designs, measures and estimates for arrays and pandas tables.

It writes requests and reads them with `requests`, so that what a field means, and what is refused,
is the same in Python and in JSON.
"""
