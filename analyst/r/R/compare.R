# SPDX-License-Identifier: Apache-2.0
# Differences between groups, with margins, tests and effect sizes, from the server.

compare <- function(estimates, reference = "first", by = NULL, equivalence = NULL) {
  .is_estimates(estimates)
  if (is.null(estimates$server)) {
    .invalid("these estimates did not come from a server", "compare", code = "unsupported")
  }
  request <- estimates$request
  request$compare <- reference
  request["equivalence"] <- list(equivalence)
  request$completion <- FALSE
  # Comparisons are of groups, never of their population.
  request["group_sizes"] <- list(NULL)
  if (!is.null(by)) request$by <- by
  body <- .ask(
    estimates$server, "GET", .path(estimates$survey, "estimates"), query = .query(request)
  )
  .comparisons(body, estimates$language)
}

.comparisons <- function(body, language) {
  rows <- unlist(lapply(body$comparisons, function(one) c(one$rows, one$trend$rows)), recursive = FALSE)
  flat <- lapply(rows, function(row) {
    row$label <- .localised(row$label, language, body$languages)
    lapply(row, .flat)
  })
  tested <- Filter(function(one) !is.null(one$homogeneity$statistic), body$comparisons)
  tests <- lapply(tested, function(one) {
    .htest(
      one$homogeneity$statistic, one$homogeneity$df, "Wald test of equal shares in all groups",
      one$question
    )
  })
  structure(
    list(
      title = .localised(body$title, language, body$languages), rows = .rows(flat), tests = tests
    ),
    class = "frankly_comparisons"
  )
}

as.data.frame.frankly_comparisons <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- x$rows
  if (!is.null(row.names)) row.names(rows) <- row.names
  rows
}

.compared <- function(rows) {
  pair <- ifelse(nzchar(rows$reference), paste(rows$by, "-", rows$reference), rows$by)
  paste0(rows$question, ":", rows$choice, " [", pair, "]")
}

coef.frankly_comparisons <- function(object, ...) {
  stats::setNames(object$rows$difference, .compared(object$rows))
}

print.frankly_comparisons <- function(x, ...) {
  cat(sprintf("%s: comparisons of groups\n", x$title))
  rows <- x$rows
  if (length(rows) && nrow(rows)) {
    shown <- data.frame(
      difference = .shown(rows$difference, rows$unit, 1), low = .shown(rows$low, rows$unit, 1),
      high = .shown(rows$high, rows$unit, 1), p = format.pval(rows$p, digits = 2, eps = 1e-4),
      p_holm = format.pval(rows$p_holm, digits = 2, eps = 1e-4), row.names = .compared(rows)
    )
    if (any(!is.na(rows$p_equivalence))) {
      shown$p_equivalence <- format.pval(rows$p_equivalence, digits = 2, eps = 1e-4)
    }
    print(shown)
  }
  for (test in x$tests) {
    cat(sprintf(
      "%s: equal shares in all groups: X-squared = %.2f, df = %d, p %s\n", test$data.name,
      test$statistic, as.integer(test$parameter), format.pval(test$p.value, digits = 2, eps = 1e-4)
    ))
  }
  invisible(x)
}

tidy.frankly_comparisons <- function(x, ...) {
  rows <- x$rows
  data.frame(
    term = .compared(rows), question = rows$question, choice = rows$choice, by = rows$by,
    reference = rows$reference, estimate = rows$difference, std.error = rows$se,
    conf.low = rows$low, conf.high = rows$high, p.value = rows$p, adj.p.value = rows$p_holm,
    stringsAsFactors = FALSE
  )
}
