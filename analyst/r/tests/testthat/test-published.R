# SPDX-License-Identifier: Apache-2.0
# Comparison with models published, with their data, in the vignette of rrLogit 1.0.1
# (docs/published.md).

one_question <- function(choices, counted, weights) {
  value <- part(list(question("answer", choices)), list(table_factor(weights)), list(stratum(list(), counted)))
  frankly:::.counts(body(list(value), by = character()))
}

CARDS <- rbind(c(4, 1), c(1, 4))

test_that("rule violations: the coefficient and the error of the share", {
  fit <- rr_glm(answer ~ 1, one_question(c("yes", "no"), c(120, 292), CARDS))
  expect_equal(unname(coef(fit)), 1.718197, tolerance = 1e-6)
  share <- unname(predict(fit, data.frame(row = 1)))
  expect_equal(1 - share, 0.1521036, tolerance = 1e-6)
  for (type in c("sandwich", "model")) {
    error <- sqrt(vcov(fit, type = type)[1, 1]) * share * (1 - share)
    expect_equal(error, 0.03730654, tolerance = 1e-6)
  }
})

test_that("both questions: the maximum is at the boundary, which is a refusal", {
  both <- one_question(c("yy", "yn", "ny", "nn"), c(68, 52, 103, 189), kronecker(CARDS, CARDS))
  expect_identical(problem(rr_glm(answer ~ 1, both))$code, "not_identifiable")
  shares <- coef(poststratify(both, "answer"))
  expect_equal(unname(shares), c(0.17718447, -0.02508091, 0.18122977, 0.66666667), tolerance = 1e-7)
})

test_that("alligators: 24 coefficients of a multinomial model, with errors", {
  counted <- matrix(c(
    7, 1, 0, 0, 5, 4, 0, 0, 1, 2, 16, 3, 2, 2, 3, 3, 0, 1, 2, 3, 2, 2, 0, 0, 1, 13, 7, 6, 0, 0, 3, 9, 1, 0, 2,
    0, 1, 0, 1, 0, 3, 7, 1, 0, 1, 8, 6, 6, 3, 5, 2, 4, 1, 1, 4, 0, 1, 0, 0, 0, 13, 10, 0, 2, 2, 9, 0, 0, 1, 2,
    3, 9, 1, 0, 1, 8, 1, 0, 0, 1
  ), 16, byrow = TRUE)
  lakes <- c("hancock", "oklawaha", "trafford", "george")
  by <- expand.grid(size = c("small", "large"), sex = c("M", "F"), lake = lakes, stringsAsFactors = FALSE)
  strata <- lapply(seq_len(16), function(i) stratum(as.list(by[i, ]), counted[i, ]))
  food <- question("food", c("Fish", "Inv", "Rept", "Bird", "Other"))
  value <- body(list(part(list(food), list(table_factor(diag(5))), strata)), c("size", "sex", "lake"))
  value$strata_questions <- list(
    question("size", c("small", "large")), question("sex", c("M", "F")), question("lake", lakes)
  )
  fit <- rr_glm(food ~ lake + sex + size, frankly:::.counts(value))
  published <- c(
    -2.0744513, 2.6936942, 2.9363342, 1.7805123, 0.4629629, -1.3362610,
    -2.9141377, 1.4007966, 1.9315865, -1.1294628, 0.6275587, 0.5570360,
    -2.4632747, -1.1256172, 0.6617240, -0.5752664, 0.6064286, 0.7302394,
    -0.9167261, -0.7405175, 0.7911874, -0.7665752, 0.2525695, -0.2905828
  )
  errors <- c(
    0.6117, 0.6693, 0.6874, 0.6232, 0.3955, 0.4112, 0.8856, 0.8105, 0.8253, 1.1928, 0.6853, 0.6466,
    0.7739, 1.1924, 0.8461, 0.7952, 0.6888, 0.6523, 0.4782, 0.7422, 0.5879, 0.5686, 0.4663, 0.4599
  )
  expect_equal(unname(coef(fit)), published, tolerance = 1e-6)
  expect_equal(round(unname(sqrt(diag(vcov(fit, type = "model")))), 4), errors, tolerance = 1e-4)
  expect_equal(as.numeric(logLik(fit)), -268.9327, tolerance = 1e-6)
})
