# SPDX-License-Identifier: Apache-2.0
# The score table: its columns, rows and labels. tests/frankly_analyst_r compares it with the Python client's.

scale <- function() {
  asked <- question("mood-today", c("bad", "well", "none"))
  asked$choices[[1]]$score <- -1
  asked$choices[[2]]$score <- 2.5
  asked$choices[[3]]$role <- "no_answer"
  value <- part(list(asked), list(table_factor(GRR)), list(stratum(list(sex = "f"), c(30, 20, 10))))
  value$rest <- list(n = 7, counts = list(4, 0, 3))
  value
}

test_that("reports without public answers have rows of their own, unless they are left out", {
  x <- frankly:::.counts(body(list(scale())))
  table <- decoded(x, "mood-today")
  expect_identical(as.character(table$sex), c("f", "f", "f", NA, NA))
  expect_identical(table$symbol, c(0, 1, 2, 0, 2))
  expect_identical(table$count, c(30, 20, 10, 4, 3))
  expect_identical(decoded(x, "mood-today", complete = TRUE)$count, c(30, 20, 10))
  expect_identical(nrow(decoded(x, "mood-today", expand = TRUE)), 67L)
  expect_identical(coef(poststratify(x, "mood-today"))[["bad"]], sum(c(30, 20, 10) * table[1:3, "mood_today_bad"]) / 60)
})

test_that("a scale has its score, and a column for those who answered", {
  table <- decoded(frankly:::.counts(body(list(scale()))), "mood-today")
  expect_equal(table$mood_today_score, 2.5 * table$mood_today_well - table$mood_today_bad)
  expect_equal(table$mood_today_answered, table$mood_today_well + table$mood_today_bad)
  labels <- attr(table, "labels")
  expect_identical(names(labels), names(table))
  expect_identical(unname(labels[c("sex", "mood_today_bad")]), c("sex?", "mood-today: BAD"))
  expanded <- decoded(frankly:::.counts(body(list(scale()))), "mood-today", expand = TRUE)
  expect_identical(attr(expanded, "labels"), labels[names(labels) != "count"])
})

test_that("column names are those of the Python client", {
  expect_identical(
    frankly:::.column_names(c(
      "version", "count", "Version", "by", "1st", "h\u00e9-llo", strrep("a", 40), strrep("a", 41), "COUNT"
    )),
    c(
      "version", "count_2", "Version_2", "q_by", "q_1st", "h__llo", strrep("a", 31),
      paste0(strrep("a", 29), "_2"), "COUNT_3"
    )
  )
})

test_that("arms are samples of their own, and a period is a column", {
  asked <- list(question("smokes", c("no", "yes")))
  parts <- lapply(c("weak", "strong"), function(arm) {
    counted <- part(asked, list(table_factor(WARNER)), list(stratum(list(week = "2026-W20"), c(30, 20))))
    c(counted, list(arm = arm))
  })
  x <- frankly:::.counts(body(parts, by = "week"))
  table <- decoded(x, "smokes")
  expect_identical(table$arm, rep(c("weak", "strong"), each = 2))
  expect_identical(attr(table, "labels")[["week"]], "Week of release, in UTC.")
  expect_identical(as.data.frame(x)$arm, table$arm)
  expect_identical(unname(coef(poststratify(x, "smokes"))), c(0.7, 0.3))
  expect_output(print(x), "version 1, arm weak")
})

test_that("a score that cannot be estimated has no column, and no reports are an error", {
  value <- part(
    list(question("smokes", c("no", "yes"))), list(table_factor(WARNER)),
    list(stratum(list(sex = "f"), c(30, 20)))
  )
  value$factors[[1]]$decoder[2] <- list(NULL)
  expect_identical(
    names(decoded(frankly:::.counts(body(list(value))), "smokes")),
    c("version", "sex", "symbol", "smokes_no", "count")
  )
  value$factors[[1]]$decoder <- list(NULL, NULL)
  x <- frankly:::.counts(body(list(value)))
  expect_identical(problem(decoded(x, "smokes"))$code, "unsupported")
  expect_identical(coef(poststratify(x, "smokes")), c(no = NA_real_, yes = NA_real_))
  value <- part(list(question("smokes", c("no", "yes"))), list(table_factor(WARNER)), list())
  found <- problem(decoded(frankly:::.counts(body(list(value))), "smokes"))
  expect_identical(found$field, "by")
})

test_that("texts and scores are those of the newest version, whose public choices may be fewer", {
  versions <- lapply(1:2, function(version) {
    smokes <- question("smokes", c("no", "yes"))
    smokes$choices <- Map(function(choice, score) {
      choice$score <- score
      choice
    }, smokes$choices, c(0, 10^version))
    value <- part(list(smokes), list(table_factor(WARNER)), list(
      stratum(list(sex = if (version == 1) "x" else "f"), c(30, 20))
    ))
    value$version <- version
    value$document <- paste0("sha256:", version)
    value
  })
  x <- frankly:::.counts(body(versions))
  table <- decoded(x, "smokes", complete = TRUE)
  expect_identical(as.character(table$sex), rep(c("x", "f"), each = 2))
  expect_equal(table$smokes_score, 100 * table$smokes_yes)
  expect_identical(unique(decoded(x, "smokes", documents = "sha256:1")$version), 1L)
  expect_identical(problem(decoded(x, "smokes", documents = "sha256:3"))$field, "documents")
})
