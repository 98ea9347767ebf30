# SPDX-License-Identifier: Apache-2.0
# Every field of a request becomes the text that the server reads; bad input is refused without a
# request.

defaults <- function(...) {
  request <- lapply(formals(estimates)[-c(1, 2)], eval)
  request$language <- NULL
  given <- list(...)
  request[names(given)] <- given
  request
}

test_that("each field is written as text, and defaults are left out", {
  expect_length(frankly:::.query(defaults()), 0)
  cases <- list(
    list("level", 0.9, "0.9"), list("level", 0.999, "0.999"), list("census", TRUE, "true"),
    list("population", 1200, "1200"), list("population", 1e6, "1000000"),
    list("simultaneous", TRUE, "true"), list("method", "kl", "kl"), list("percent", "row", "row"),
    list("weights", "inverse-variance", "inverse-variance"), list("completion", TRUE, "true"),
    list("by", "region,week", "region,week"),
    list("since", as.Date("2026-05-01"), "2026-05-01"), list("until", "2026-05-31", "2026-05-31"),
    list("quantiles", c(0.25, 0.5), "0.25,0.5"), list("quantiles", 0.9, "0.9"), list("compare", "all", "all"), list("compare", c(north = 1, south = -1), '{"north":1,"south":-1}'),
    list("group_sizes", c(north = 500, south = 300.5), '{"north":500,"south":300.5}'),
    list("group_sizes", '{"north": 1, "south": 2}', '{"north": 1, "south": 2}'),
    list("equivalence", 0.05, "0.05"),
    list("random", list(drinks = c(yes = 1, no = 4)), '{"drinks":{"yes":1,"no":4}}'),
    list("targets", "scales", "scales"), list("targets", c("smokes", "drinks"), '["smokes","drinks"]'),
    list("targets", "smokes", '["smokes"]'),
    list("targets", '{"a":{"b":{"c":1}}}', '{"a":{"b":{"c":1}}}'),
    list(
      "targets", list(drinks = list("at all" = c(weekly = 1, daily = 0.5))),
      '{"drinks":{"at all":{"weekly":1,"daily":0.5}}}'
    )
  )
  for (case in cases) {
    query <- frankly:::.query(do.call(defaults, stats::setNames(case[2], case[[1]])))
    expect_identical(query, stats::setNames(case[3], case[[1]]))
  }
})

test_that("bad input is refused with the code and the field", {
  x <- two_groups()
  e <- recorded_estimates("shares")
  population <- data.frame(sex = c("f", "m"), N = c(1, 2))
  cases <- list(
    list(quote(frankly("http://example.org", "k")), "network", "url"),
    list(quote(frankly("https://example.org", "")), "field_type", "key"),
    list(quote(frankly("file:///etc", "k")), "network", "url"),
    list(quote(estimates("server", "s")), "targets_invalid", "server"),
    list(quote(estimates(frankly("https://example.org", "k"), "")), "field_type", "survey"),
    list(quote(lincom(e, "drinks", c(1, 2))), "targets_invalid", "weights"),
    list(quote(lincom(e, "drinks", c(daily = 1, daily = 2))), "targets_invalid", "weights"),
    list(quote(ratio(e, "drinks", c(daily = 1), "never")), "targets_invalid", "over"),
    list(quote(crosstab(e, "smokes", "smokes")), "targets_invalid", "questions"),
    list(quote(crosstab(e, "smokes", "drinks")), "unsupported", "targets"),
    list(quote(confint(e, level = 0.9)), "unsupported", "level"),
    list(quote(compare(e)), "unsupported", "compare"),
    list(quote(independence(e)), "targets_invalid", "table"),
    list(quote(homogeneity(e, "smokes")), "targets_invalid", "estimates"),
    list(quote(decoded(x, "drinks")), "targets_invalid", "questions"),
    list(quote(decoded(x, c("smokes", "smokes"))), "field_type", "questions"),
    list(quote(poststratify(x, "drinks")), "targets_invalid", "question"),
    list(quote(decoded(e, "drinks")), "field_type", "counts"),
    list(quote(poststratify(x, "smokes", list(1))), "weights_invalid", "population"),
    list(quote(poststratify(x, "smokes", population["sex"])), "weights_invalid", "population"),
    list(quote(poststratify(x, "smokes", data.frame(age = "old", N = 1))), "weights_invalid", "population"),
    list(quote(poststratify(x, "smokes", population[1, ])), "weights_invalid", "population"),
    list(quote(poststratify(x, "smokes", rbind(population, population))), "weights_invalid", "population"),
    list(quote(poststratify(x, "smokes", transform(population, N = -1))), "weights_invalid", "population"),
    list(
      quote(poststratify(x, "smokes", rbind(population, data.frame(sex = "x", N = 1)))), "weights_invalid",
      "population"
    ),
    list(quote(rr_glm(smokes, x)), "error", NULL),
    list(quote(rr_glm("smokes ~ sex", x)), "field_type", "formula"),
    list(quote(rr_glm(~sex, x)), "field_type", "formula"),
    list(quote(rr_glm(smokes ~ region, x)), "strata_invalid", "formula"),
    list(quote(rr_glm(smokes ~ sex, x, event = "maybe")), "targets_invalid", "event"),
    list(quote(rr_glm(smokes ~ sex, x, event = c("no", "yes"))), "targets_invalid", "event"),
    list(quote(rr_glm(smokes ~ sex + I(1 * (sex == "m")), x)), "not_identifiable", "formula"),
    list(quote(logLik(rr_glm(smokes ~ sex, x, method = "scores"))), "unsupported", "object")
  )
  for (case in cases) {
    if (case[[2]] == "error") {
      expect_error(eval(case[[1]]))
      next
    }
    found <- problem(eval(case[[1]]))
    expect_identical(c(found$code, found$field), c(case[[2]], case[[3]]), info = deparse(case[[1]]))
    expect_s3_class(found, paste0("frankly_", case[[2]]))
  }
})

test_that("the key is not printed", {
  server <- frankly("https://surveys.example.org/", "secret-key")
  shown <- c(capture.output(print(server)), capture.output(str(server)), capture.output(dput(server)))
  expect_false(any(grepl("secret-key", shown)))
  expect_identical(server$url, "https://surveys.example.org")
})

test_that("a server that does not answer is a condition without the query", {
  found <- problem(estimates(frankly("http://127.0.0.1:9", "k"), "s", method = "kl"))
  expect_s3_class(found, "frankly_unreachable")
  expect_false(grepl("kl|/v1/", conditionMessage(found)))
})
