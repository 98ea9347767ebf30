# SPDX-License-Identifier: Apache-2.0
"""A Flask app's page with a survey in it; the app serves its own copy of the browser SDK."""
