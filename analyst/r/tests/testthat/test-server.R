# SPDX-License-Identifier: Apache-2.0
# Tests against a real server, if the caller has started one and set these variables.

server <- function() {
  skip_if(Sys.getenv("FRANKLY_URL") == "", "no server")
  frankly(Sys.getenv("FRANKLY_URL"), Sys.getenv("FRANKLY_API_KEY"))
}

survey <- Sys.getenv("SURVEY")

test_that("shares, groups, tables, combinations and another level come from the server", {
  at <- server()
  e <- estimates(at, survey)
  expect_equal(sum(coef(e)[1:2]), 1)
  expect_gt(diff(confint(e, "smokes:yes", level = 0.99)[1, ]), diff(confint(e, "smokes:yes")[1, ]))
  groups <- estimates(at, survey, by = "region", method = "clt", level = 0.9)
  expect_identical(unique(groups$rows$by), c("region=north", "region=south"))
  expect_identical(unique(groups$rows$method), "clt")
  sum <- lincom(e, "drinks", c(weekly = 1, daily = 1))
  expect_equal(unname(coef(sum)), sum(coef(e)[c("drinks:weekly", "drinks:daily")]))
  north <- lincom(groups, "drinks", c(daily = 1), by = "region=north")
  expect_equal(unname(coef(north)), coef(groups)[["drinks:daily [region=north]"]])
  share <- ratio(e, "drinks", of = c(daily = 1), over = c(weekly = 1, daily = 1))
  expect_equal(unname(coef(share)), coef(e)[["drinks:daily"]] / unname(coef(sum)))
  table <- crosstab(e, "smokes", "drinks")
  expect_identical(nrow(table$rows), 6L)
  expect_s3_class(independence(table), "htest")
  cell <- lincom(table, "smokes \u00d7 drinks", c("yes \u00d7 daily" = 1))
  expect_equal(unname(coef(cell)), coef(table)[["smokes \u00d7 drinks:yes \u00d7 daily"]])
  expect_s3_class(homogeneity(groups, "drinks"), "htest")
})

test_that("groups are compared by the server, and its tests are those made here", {
  at <- server()
  groups <- estimates(at, survey, by = "region")
  compared <- compare(groups)
  smokes <- coef(groups)[c("smokes:yes [region=south]", "smokes:yes [region=north]")]
  expect_equal(
    coef(compared)[["smokes:yes [region=south - region=north]"]], unname(smokes[1] - smokes[2]), tolerance = 1e-9
  )
  expect_equal(unname(compared$tests[[1]]$statistic), unname(homogeneity(groups, "smokes")$statistic), tolerance = 0.1)
  weighted <- compare(estimates(at, survey), c(north = 0.5, south = 0.5), by = "region")
  expect_equal(
    as.data.frame(weighted)$difference[2], mean(smokes), tolerance = 1e-9
  )
  expect_output(print(compared), "equal shares in all groups")
  expect_identical(nrow(broom::tidy(compared)), nrow(as.data.frame(compared)))
  expect_identical(unname(compared$tests[[2]]$parameter), 2L)
  one <- independence(crosstab(groups, "smokes", "drinks"), by = "region=north")
  expect_s3_class(one, "htest")
})

test_that("counts give the server's own estimates and errors", {
  at <- server()
  e <- estimates(at, survey)
  x <- counts(at, survey, by = c("region", "sex"))
  for (question in c("smokes", "drinks")) {
    mine <- poststratify(counts(at, survey), question)
    rows <- e$rows[e$rows$question == question, ]
    expect_equal(unname(coef(mine)), rows$estimate, tolerance = 1e-9)
    expect_equal(unname(sqrt(diag(vcov(mine)))), rows$se, tolerance = 1e-9)
    expect_identical(sum(decoded(x, question)$count), as.numeric(e$n))
  }
  fit <- rr_glm(smokes ~ region, x)
  groups <- estimates(at, survey, by = "region")
  shares <- coef(groups)[c("smokes:yes [region=north]", "smokes:yes [region=south]")]
  expect_equal(unname(predict(fit, data.frame(region = c("north", "south")))), unname(shares), tolerance = 1e-7)
})

test_that("surveys are listed and plans are made", {
  at <- server()
  listed <- surveys(at)
  row <- listed[listed$survey == survey, ]
  expect_identical(row$name, "habits")
  expect_identical(row$strata, "region,sex")
  expect_identical(coef(estimates(at, "habits")), coef(estimates(at, survey)))
  expect_identical(counts(at, "Habits")$survey, survey)
  expect_identical(problem(estimates(at, "nothing"))$code, "survey_unknown")
  planned <- plan(
    at, "n", prior = list(joint = list(c(1, 1))), notion = "ldp", mechanism = "grr",
    epsilon = "1", margin = 0.05
  )
  expect_gt(planned$n, 1000)
  expect_output(print(planned), "reports with epsilon")
})

test_that("a refusal is a condition with code, field, detail and status", {
  at <- server()
  found <- problem(estimates(at, survey, targets = "nothing"))
  expect_identical(found$code, "targets_invalid")
  expect_identical(found$field, "targets")
  expect_identical(found$status, 422L)
  expect_s3_class(found, "frankly_refused")
  denied <- tryCatch(
    estimates(frankly(at$url, "wrong"), survey), frankly_unauthenticated = function(e) e$status
  )
  expect_identical(denied, 401L)
})
