# SPDX-License-Identifier: Apache-2.0
"""A Flask app's page with a survey in it: the app brings its own copy of the browser SDK."""
