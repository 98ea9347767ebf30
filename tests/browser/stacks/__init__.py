# SPDX-License-Identifier: Apache-2.0
"""Tests of the npm packages in common stacks: bundled by Vite, rendered without a DOM, run in Chromium."""
