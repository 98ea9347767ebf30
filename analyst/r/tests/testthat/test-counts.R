# SPDX-License-Identifier: Apache-2.0
# Counts and decoded scores, against the definition and against the package survey.

test_that("scores are unbiased for every answer, for a table and for a product of tables", {
  asked <- list(question("smokes", c("no", "yes")), question("drinks", c("never", "weekly", "daily")))
  counted <- seq_len(6) * 10
  value <- part(asked, list(table_factor(WARNER), table_factor(GRR)), list(stratum(list(sex = "f"), counted)))
  x <- frankly:::.counts(body(list(value)))
  law <- kronecker(WARNER / 4, GRR / 6)
  for (name in c("smokes", "drinks")) {
    scores <- x$parts[[1]]$of[[name]] %*% x$parts[[1]]$decoder
    truth <- expand.grid(drinks = 1:3, smokes = 1:2)[[name]]
    expect_equal(law %*% t(scores), 1 * outer(truth, seq_len(nrow(scores)), "=="), tolerance = 1e-12)
  }
  table <- decoded(x, c("drinks", "smokes"))
  for (name in names(table)[startsWith(names(table), "drinks_")]) {
    is_true <- apply(expand.grid(drinks = c("never", "weekly", "daily"), smokes = c("no", "yes")), 1, function(truth) {
      name %in% paste0("drinks_", truth[["drinks"]], c("", paste0("_smokes_", truth[["smokes"]])))
    })
    expect_equal(drop(law %*% table[[name]]), 1 * is_true, tolerance = 1e-12, info = name)
  }
})

test_that("a share that cannot be estimated is NA", {
  value <- part(
    list(question("smokes", c("no", "yes"))), list(table_factor(WARNER)),
    list(stratum(list(sex = "f"), c(30, 20)))
  )
  value$factors[[1]]$decoder[2] <- list(NULL)
  weighted <- poststratify(frankly:::.counts(body(list(value))), "smokes")
  expect_identical(is.na(coef(weighted)), c(no = FALSE, yes = TRUE))
})

# Sets of three answers: each answer is in the set with probability 3/4 if it is true, else 1/4.
unary <- function(pairs, masks) {
  factor <- list(
    name = "unary", inside = list(3, 4), outside = list(1, 4), design_prior = list(1, 1, 1),
    decoder = as_rows(cbind(-0.5, 2 * diag(3)))
  )
  value <- part(list(question("likes", c("a", "b", "c"))), list(factor), list(), kind = "sets")
  value$strata <- list(list(
    by = list(sex = "f"), n = sum(masks[, 2]), pairs = as_rows(pairs), masks = as_rows(masks)
  ))
  frankly:::.counts(body(list(value)))
}

test_that("sets are symbols with the scores and the law of the mechanism", {
  masks <- cbind(0:7, c(5, 20, 12, 9, 8, 7, 6, 3))
  member <- outer(0:2, 0:7, function(x, mask) floor(mask / 2^x) %% 2)
  pairs <- member %*% (masks[, 2] * t(member))
  x <- unary(pairs, masks)
  scores <- as.matrix(decoded(x, "likes")[c("likes_a", "likes_b", "likes_c")])
  law <- sapply(1:3, function(truth) {
    chance <- ifelse(1:3 == truth, 3 / 4, 1 / 4)
    apply(ifelse(member == 1, chance, 1 - chance), 2, prod)
  })
  expect_equal(t(law) %*% scores, diag(3), ignore_attr = TRUE, tolerance = 1e-12)
  # Equal to the law up to a factor for each set.
  expect_equal(diff(range(t(law)[1, ] / x$parts[[1]]$law[1, ] - t(law)[2, ] / x$parts[[1]]$law[2, ])), 0)
  expect_equal(sum(coef(poststratify(x, "likes"))), sum(colSums(masks[, 2] * scores)) / sum(masks[, 2]))
})

test_that("the package survey gives the same shares and errors on expanded scores", {
  skip_if_not_installed("survey")
  x <- two_groups()
  plain <- survey::svydesign(ids = ~1, weights = ~1, data = decoded(x, "smokes", expand = TRUE))
  mean <- survey::svymean(~ smokes_no + smokes_yes, plain)
  expect_equal(unname(coef(mean)), unname(coef(poststratify(x, "smokes"))), tolerance = 1e-10)
  expect_equal(unclass(vcov(mean)), vcov(poststratify(x, "smokes")), tolerance = 1e-10, ignore_attr = TRUE)
  population <- data.frame(sex = c("f", "m"), N = c(1000, 2000))
  weighted <- poststratify(x, "smokes", population)
  post <- survey::postStratify(plain, ~sex, data.frame(sex = c("f", "m"), Freq = c(1000, 2000)))
  mean <- survey::svymean(~ smokes_no + smokes_yes, post)
  expect_equal(unname(coef(mean)), unname(coef(weighted)), tolerance = 1e-10)
  expect_equal(unclass(vcov(mean)), vcov(weighted), tolerance = 1e-10, ignore_attr = TRUE)
  expect_equal(unname(survey::SE(weighted)), unname(sqrt(diag(vcov(weighted)))))
  raked <- survey::rake(plain, list(~sex), list(data.frame(sex = c("f", "m"), Freq = c(1000, 2000))))
  expect_equal(unname(coef(survey::svymean(~ smokes_no + smokes_yes, raked))), unname(coef(weighted)), tolerance = 1e-6)
})

test_that("groups, calibration and linear models of scores are right in survey", {
  skip_if_not_installed("survey")
  x <- two_groups()
  scores <- decoded(x, "smokes", expand = TRUE)
  plain <- survey::svydesign(ids = ~1, weights = ~1, data = scores)
  groups <- survey::svyby(~smokes_yes, ~sex, plain, survey::svymean)
  share <- c(200 / 500, 210 / 400) * 2 - 0.5
  # The scores differ by 2, so the variance of a mean is 4 times the variance of the share of
  # symbols.
  error <- sqrt(4 * c(0.4 * 0.6 / 500, 0.525 * 0.475 / 400))
  expect_equal(unname(coef(groups)), share, tolerance = 1e-10)
  expect_equal(unname(survey::SE(groups)), error, tolerance = 1e-3)
  linear <- survey::svyglm(smokes_yes ~ sex, plain)
  expect_equal(unname(coef(linear)), c(share[1], diff(share)), tolerance = 1e-10)
  expect_equal(unname(survey::SE(linear)), c(error[1], sqrt(sum(error^2))), tolerance = 1e-3)
  totals <- c("(Intercept)" = 3000, sexm = 2000)
  calibrated <- survey::svymean(~smokes_yes, survey::calibrate(plain, ~sex, totals))
  weighted <- poststratify(x, "smokes", data.frame(sex = c("f", "m"), N = c(1000, 2000)))
  expect_equal(coef(calibrated)[["smokes_yes"]], coef(weighted)[["yes"]], tolerance = 1e-8)
  expect_equal(survey::SE(calibrated)[[1]], sqrt(vcov(weighted)["yes", "yes"]), tolerance = 1e-8)
  raked <- survey::rake(plain, list(~sex), list(data.frame(sex = c("f", "m"), Freq = c(1000, 2000))))
  expect_equal(survey::SE(survey::svymean(~smokes_yes, raked))[[1]], sqrt(vcov(weighted)["yes", "yes"]), tolerance = 1e-6)
})

test_that("without expanding, survey gives the same shares but wrong errors", {
  skip_if_not_installed("survey")
  x <- two_groups()
  rows <- survey::svydesign(ids = ~1, weights = ~count, data = decoded(x, "smokes"))
  mean <- survey::svymean(~ smokes_no + smokes_yes, rows)
  expect_equal(unname(coef(mean)), unname(coef(poststratify(x, "smokes"))), tolerance = 1e-10)
  expect_gt(survey::SE(mean)[["smokes_yes"]], 5 * sqrt(vcov(poststratify(x, "smokes"))["yes", "yes"]))
})

test_that("versions with other mechanisms are added as scores, not as symbols", {
  asked <- list(question("smokes", c("no", "yes")))
  parts <- list(
    part(asked, list(table_factor(WARNER)), list(stratum(list(sex = "f"), c(300, 200)))),
    part(asked, list(table_factor(diag(2))), list(stratum(list(sex = "f"), c(70, 30))), version = 2)
  )
  x <- frankly:::.counts(body(parts))
  expect_equal(coef(poststratify(x, "smokes"))[["yes"]], (500 * 0.3 + 100 * 0.3) / 600)
  expect_output(print(x), "1 strata of fewer than 10 reports withheld, with 4 reports")
  expect_identical(nrow(as.data.frame(x)), 4L)
})
