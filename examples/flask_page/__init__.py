# SPDX-License-Identifier: Apache-2.0
"""A page of a Flask app that contains a survey; the app serves its own copy of the browser SDK."""
