# SPDX-License-Identifier: Apache-2.0
# Bodies of counts in the server's format (spec 8.11), and values shared by tests.

choice <- function(id) list(id = id, label = list(en = toupper(id)))

question <- function(id, choices) {
  list(id = id, text = list(en = paste0(id, "?")), choices = lapply(choices, choice))
}

# A table with whole-number weights; rows are answers.
table_factor <- function(weights) {
  law <- weights / sum(weights[1, ])
  decoder <- if (nrow(law) == ncol(law)) t(solve(law)) else t(MASS_free_inverse(law))
  list(
    name = "dense", denominator = sum(weights[1, ]), weights = as_rows(weights),
    decoder = as_rows(decoder), design_prior = as.list(rep(1, nrow(weights)))
  )
}

# Least-squares inverse: scores d with sum_y law[s, y] d[x, y] = (s == x).
MASS_free_inverse <- function(law) t(law) %*% solve(law %*% t(law))

as_rows <- function(matrix) lapply(seq_len(nrow(matrix)), function(i) as.list(matrix[i, ]))

stratum <- function(by, counts) list(by = by, n = sum(counts), counts = as.list(counts))

part <- function(questions, factors, strata, version = 1, kind = "table") {
  list(
    document = paste0("sha256:", version), version = version, release = 1, block = "b", kind = kind,
    n = 0, minimum = 10, questions = questions, factors = factors, strata = strata,
    withheld = list(strata = 1, reports = 4), without_stratum = 0
  )
}

body <- function(parts, by = "sex") {
  list(
    survey = "s", title = list(en = "Habits"), languages = list("en"), by = as.list(by), n = 900,
    strata_questions = list(question("sex", c("f", "m")), question("age", c("young", "old"))),
    parts = parts
  )
}

WARNER <- rbind(c(3, 1), c(1, 3))
GRR <- rbind(c(4, 1, 1), c(1, 4, 1), c(1, 1, 4))

two_groups <- function(weights = WARNER, f = c(300, 200), m = c(190, 210)) {
  asked <- question("smokes", c("no", "yes"))
  strata <- list(stratum(list(sex = "f"), f), stratum(list(sex = "m"), m))
  frankly:::.counts(body(list(part(list(asked), list(table_factor(weights)), strata))))
}

recorded <- function(name) {
  jsonlite::fromJSON(test_path("recorded", paste0(name, ".json")), simplifyVector = FALSE)
}

recorded_estimates <- function(name) {
  frankly:::.estimates(recorded(name), NULL, "s", list(level = 0.95, targets = "shares"), NULL)
}

# Call an expression and return its condition, which must be one of this package.
problem <- function(expression) {
  found <- tryCatch(expression, frankly_error = function(e) e)
  expect_s3_class(found, "frankly_error")
  found
}
