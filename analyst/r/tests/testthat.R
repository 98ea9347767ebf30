# SPDX-License-Identifier: Apache-2.0
library(testthat)
library(frankly)

test_check("frankly")
