# SPDX-License-Identifier: Apache-2.0
"""The admin's pages in real Chromium."""
