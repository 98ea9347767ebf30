# SPDX-License-Identifier: Apache-2.0
# Estimates as R objects, from recorded responses of a server.

test_that("coef, SE, vcov and confint are the server's numbers", {
  e <- recorded_estimates("shares")
  body <- recorded("shares")
  rows <- unlist(lapply(body$questions, `[[`, "rows"), recursive = FALSE)
  values <- function(name) vapply(rows, `[[`, 0, name)
  expect_identical(unname(coef(e)), values("estimate"))
  expect_identical(names(coef(e))[1:2], c("smokes:no", "smokes:yes"))
  expect_identical(unname(confint(e)), cbind(values("low"), values("high")))
  expect_identical(rownames(confint(e, "smokes:yes")), "smokes:yes")
  expect_equal(unname(sqrt(diag(vcov(e)))), values("se"), tolerance = 1e-12)
  drinks <- grep("^drinks", names(coef(e)))
  expect_equal(
    unname(vcov(e)[drinks, drinks]), matrix(unlist(body$questions[[2]]$covariance), length(drinks)),
    tolerance = 1e-12
  )
  # The server does not compute covariances between questions.
  expect_true(all(is.na(vcov(e)[1:2, drinks])))
  expect_identical(nobs(e), body$n)
})

test_that("groups are named, and independent of each other", {
  e <- recorded_estimates("by_region")
  names <- names(coef(e))
  expect_true(all(grepl("\\[region=(north|south)\\]$", names)))
  north <- grep("^smokes.*north", names)
  south <- grep("^smokes.*south", names)
  expect_true(all(vcov(e)[north, south] == 0))
  expect_true(all(is.na(vcov(e)[north, grep("^drinks.*north", names)])))
})

test_that("the object prints, plots and converts", {
  e <- recorded_estimates("shares")
  shown <- paste(capture.output(print(e)), collapse = "\n")
  expect_match(shown, sprintf("Habits: %d reports", e$n))
  for (row in seq_len(nrow(e$rows))) expect_match(shown, sprintf("%.1f%%", 100 * e$rows$low[row]), fixed = TRUE)
  frame <- as.data.frame(e)
  expect_identical(nrow(frame), 5L)
  expect_true(all(c("question", "choice", "estimate", "se", "low", "high", "n", "flags") %in% names(frame)))
  expect_identical(summary(e)$estimate, frame$estimate)
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  expect_invisible(plot(e))
  grDevices::dev.off()
  expect_gt(file.size(file), 1000)
})

test_that("tidy, glance and SE are found by broom and survey", {
  e <- recorded_estimates("shares")
  if (requireNamespace("broom", quietly = TRUE)) {
    expect_identical(broom::tidy(e)$estimate, unname(coef(e)))
    expect_identical(broom::tidy(e)$conf.low, unname(confint(e)[, 1]))
    expect_identical(broom::glance(e)$nobs, e$n)
  }
  if (requireNamespace("survey", quietly = TRUE)) expect_identical(unname(survey::SE(e)), e$rows$se)
})

test_that("homogeneity of two groups is the quadratic form of their difference", {
  e <- recorded_estimates("by_region")
  found <- homogeneity(e, "drinks")
  rows <- lapply(c("north", "south"), function(by) head(grep(paste0("^drinks.*", by), names(coef(e))), -1))
  difference <- coef(e)[rows[[1]]] - coef(e)[rows[[2]]]
  variance <- vcov(e)[rows[[1]], rows[[1]]] + vcov(e)[rows[[2]], rows[[2]]]
  expect_equal(unname(found$statistic), drop(difference %*% solve(variance) %*% difference), tolerance = 1e-10)
  expect_identical(unname(found$parameter), 2)
  expect_s3_class(found, "htest")
})

test_that("a population of groups is no further group, and its errors are not independent of theirs", {
  e <- recorded_estimates("by_region")
  population <- e
  added <- e$rows[e$rows$by == "region=north", ]
  added$by <- "weighted=region"
  population$rows <- rbind(e$rows, added)
  expect_equal(homogeneity(population, "drinks")$statistic, homogeneity(e, "drinks")$statistic)
  names <- names(coef(population))
  expect_true(all(is.na(vcov(population)[grep("weighted", names), grep("=north", names)])))
})

test_that("independence is the Wald statistic of a numerical gradient", {
  e <- recorded_estimates("crosstab")
  found <- independence(e)
  departure <- function(p) {
    table <- matrix(p, 2, byrow = TRUE)
    (sum(table) * table - outer(rowSums(table), colSums(table)))[1, 1:2]
  }
  p <- unname(coef(e))
  step <- 1e-6
  gradient <- sapply(seq_along(p), function(i) {
    (departure(replace(p, i, p[i] + step)) - departure(replace(p, i, p[i] - step))) / (2 * step)
  })
  value <- departure(p)
  statistic <- drop(value %*% solve(gradient %*% unname(vcov(e)) %*% t(gradient)) %*% value)
  expect_equal(unname(found$statistic), statistic, tolerance = 1e-6)
  expect_identical(unname(found$parameter), 2L)
})
