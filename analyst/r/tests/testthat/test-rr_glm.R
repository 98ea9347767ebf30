# SPDX-License-Identifier: Apache-2.0
# Regressions, against stats::glm, closed forms and a general optimiser.

test_that("without randomisation it is stats::glm", {
  x <- two_groups(diag(2))
  fit <- rr_glm(smokes ~ sex, x)
  known <- stats::glm(cbind(c(200, 210), c(300, 190)) ~ factor(c("f", "m")), family = stats::binomial)
  expect_equal(unname(coef(fit)), unname(coef(known)), tolerance = 1e-8)
  expect_equal(unname(vcov(fit, "model")), unname(vcov(known)), tolerance = 1e-6)
})

test_that("a saturated model has the logits of the unbiased shares, with delta-method errors", {
  x <- two_groups()
  fit <- rr_glm(smokes ~ sex, x)
  share <- (c(200 / 500, 210 / 400) - 1 / 4) / (1 / 2)
  expect_equal(unname(coef(fit)), c(qlogis(share[1]), diff(qlogis(share))), tolerance = 1e-8)
  variance <- c(0.4 * 0.6 / 500, 0.525 * 0.475 / 400) * 4 / (share * (1 - share))^2
  expect_equal(unname(diag(vcov(fit))), c(variance[1], sum(variance)), tolerance = 1e-6)
  expect_equal(unname(predict(fit, data.frame(sex = c("f", "m")))), share, tolerance = 1e-8)
  expect_equal(coef(rr_glm(smokes ~ sex, x, method = "scores")), coef(fit), tolerance = 1e-8)
  expect_equal(unname(coef(rr_glm(smokes ~ sex, x, event = "no"))), -unname(coef(fit)), tolerance = 1e-8)
})

four_strata <- function(weights, counts) {
  choices <- if (nrow(weights) == 2) c("no", "yes") else c("never", "weekly", "daily")
  by <- list(list(sex = "f", age = "young"), list(sex = "f", age = "old"),
             list(sex = "m", age = "young"), list(sex = "m", age = "old"))
  strata <- Map(stratum, by, counts)
  value <- part(list(question("answer", choices)), list(table_factor(weights)), strata)
  frankly:::.counts(body(list(value), c("sex", "age")))
}

test_that("a model that is not saturated maximises the likelihood", {
  counts <- list(c(300, 200), c(220, 250), c(190, 210), c(120, 190))
  fit <- rr_glm(answer ~ sex + age, four_strata(WARNER, counts))
  x <- cbind(1, c(0, 0, 1, 1), c(0, 1, 0, 1))
  loss <- function(beta) {
    p <- plogis(x %*% beta)
    -sum(do.call(rbind, counts) * log(cbind(1 - p, p) %*% (WARNER / 4)))
  }
  best <- stats::optim(numeric(3), loss, method = "BFGS", hessian = TRUE, control = list(reltol = 1e-14))
  expect_equal(unname(coef(fit)), best$par, tolerance = 1e-5)
  expect_equal(as.numeric(logLik(fit)), -best$value, tolerance = 1e-10)
  expect_equal(unname(vcov(fit, "model")), solve(best$hessian), tolerance = 1e-4)
  expect_equal(stats::AIC(fit), 2 * 3 + 2 * best$value, tolerance = 1e-10)
})

test_that("three answers: a multinomial model, and several choices as one event", {
  counts <- list(c(300, 180, 150), c(200, 220, 160), c(190, 170, 180), c(150, 160, 190))
  x <- four_strata(GRR, counts)
  fit <- rr_glm(answer ~ sex + age, x)
  design <- cbind(1, c(0, 0, 1, 1), c(0, 1, 0, 1))
  loss <- function(beta) {
    eta <- exp(cbind(0, design %*% matrix(beta, 3)))
    -sum(do.call(rbind, counts) * log((eta / rowSums(eta)) %*% (GRR / 6)))
  }
  best <- stats::optim(numeric(6), loss, method = "BFGS", control = list(reltol = 1e-14, maxit = 500))
  expect_equal(unname(coef(fit)), best$par, tolerance = 1e-4)
  expect_identical(names(coef(fit))[4], "daily:(Intercept)")
  expect_equal(dim(predict(fit, data.frame(sex = "f", age = "old"))), c(1L, 2L))
  # The event's scores are sums of scores; saturated, the model has the logit of the summed share.
  event <- rr_glm(answer ~ sex * age, x, event = c("weekly", "daily"))
  share <- vapply(counts, function(n) 1 - (n[1] / sum(n) - 1 / 6) / (1 / 2), 0)
  new <- expand.grid(age = c("young", "old"), sex = c("f", "m"))
  expect_equal(unname(predict(event, new)), share, tolerance = 1e-6)
  expect_identical(event$method, "scores")
})

test_that("weights are those of the population, with their squares in the errors", {
  x <- two_groups()
  population <- data.frame(sex = c("f", "m"), N = c(1, 3))
  fit <- rr_glm(smokes ~ 1, x, population = population)
  weighted <- poststratify(x, "smokes", population)
  expect_equal(unname(plogis(coef(rr_glm(smokes ~ 1, x, population = population, method = "scores")))),
               coef(weighted)[["yes"]], tolerance = 1e-8)
  expect_equal(unname(plogis(coef(fit))), coef(weighted)[["yes"]], tolerance = 1e-8)
  weights <- c(1, 3) / 4 / c(500, 400)
  share <- coef(weighted)[["yes"]]
  d <- c(-0.5, 1.5)
  variance <- sum(weights[1]^2 * c(300, 200) * (d - share)^2, weights[2]^2 * c(190, 210) * (d - share)^2)
  expect_equal(unname(vcov(fit))[1, 1], variance / (share * (1 - share))^2, tolerance = 1e-6)
})

test_that("no finite estimate is a refusal that says what to do", {
  expect_identical(problem(rr_glm(smokes ~ sex, two_groups(f = c(480, 20))))$code, "not_identifiable")
  found <- problem(rr_glm(smokes ~ sex, two_groups(f = c(480, 20)), method = "scores"))
  expect_match(found$detail, "merge strata")
})

test_that("broom reads the model", {
  skip_if_not_installed("broom")
  fit <- rr_glm(smokes ~ sex, two_groups())
  frame <- broom::tidy(fit, conf.int = TRUE, exponentiate = TRUE)
  expect_equal(frame$estimate, unname(exp(coef(fit))))
  expect_equal(frame$conf.low, unname(exp(confint(fit)[, 1])))
  expect_identical(frame$term, c("(Intercept)", "sexm"))
  expect_equal(broom::glance(fit)$logLik, as.numeric(logLik(fit)))
  expect_output(print(summary(fit)), "sandwich")
})
