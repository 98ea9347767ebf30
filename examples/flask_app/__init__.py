# SPDX-License-Identifier: Apache-2.0
"""A small survey app with Flask on the respondent's own device, which embeds the SDK."""
