# SPDX-License-Identifier: Apache-2.0
"""Results of a survey as people read them: charts, sentences and tables, for every page that shows them."""
