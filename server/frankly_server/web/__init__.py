# SPDX-License-Identifier: Apache-2.0
"""The HTTP border, and the only place that knows Flask: parse, call one service, render."""
