# SPDX-License-Identifier: Apache-2.0
# Wald tests from estimates and their covariances, as objects of class htest.

independence <- function(table, by = "") {
  .is_estimates(table)
  table$rows <- table$rows[table$rows$by == by, , drop = FALSE]
  if (!nrow(table$rows)) .invalid("there are no estimates of this group", "by")
  ids <- unique(table$rows$question)
  if (length(ids) != 1L || !all(grepl(" \u00d7 ", table$rows$choice))) {
    .invalid("must be one table of two questions: crosstab(estimates, \"a\", \"b\")", "table")
  }
  cells <- strsplit(table$rows$choice, " \u00d7 ", fixed = TRUE)
  if (any(lengths(cells) != 2L)) .invalid("must be a table of two questions", "table")
  row <- vapply(cells, `[`, "", 1)
  column <- vapply(cells, `[`, "", 2)
  rows <- unique(row)
  columns <- unique(column)
  p <- table$rows$estimate
  in_row <- outer(rows, row, "==")
  in_column <- outer(columns, column, "==")
  total <- sum(p)
  p_row <- drop(in_row %*% p)
  p_column <- drop(in_column %*% p)
  # Products of the margins, for all cells except the last row and column, which follow from the
  # others.
  at <- expand.grid(i = seq_len(length(rows) - 1), j = seq_len(length(columns) - 1))
  difference <- numeric(nrow(at))
  gradient <- matrix(0, nrow(at), length(p))
  for (k in seq_len(nrow(at))) {
    i <- at$i[k]
    j <- at$j[k]
    cell <- row == rows[i] & column == columns[j]
    difference[k] <- total * p[cell] - p_row[i] * p_column[j]
    gradient[k, ] <- p[cell] + total * cell - in_row[i, ] * p_column[j] - in_column[j, ] * p_row[i]
  }
  .wald(
    difference, gradient %*% vcov(table) %*% t(gradient), "Wald test of independence",
    table$rows$question[1]
  )
}

homogeneity <- function(estimates, question) {
  .is_estimates(estimates)
  .is_text(question, "question")
  rows <- estimates$rows[estimates$rows$question == question, ]
  # A population consists of the reports of its groups, so it is no further group.
  rows <- rows[!grepl("(^| )weighted=", rows$by), ]
  groups <- unique(rows$by)
  if (length(groups) < 2L) .invalid("needs estimates of two groups: estimates(by = )", "estimates")
  matrix <- vcov(estimates)
  pieces <- lapply(groups, function(by) {
    # The last share follows from the others.
    terms <- utils::head(.terms(rows[rows$by == by, ]), -1)
    list(p = coef(estimates)[terms], inverse = solve(matrix[terms, terms, drop = FALSE]))
  })
  if (length(unique(lengths(lapply(pieces, `[[`, "p")))) != 1L) {
    .invalid("the groups have different choices", "question")
  }
  weight <- Reduce(`+`, lapply(pieces, `[[`, "inverse"))
  mean <- solve(weight, Reduce(`+`, lapply(pieces, function(one) one$inverse %*% one$p)))
  statistic <- sum(vapply(pieces, function(one) {
    drop(t(one$p - mean) %*% one$inverse %*% (one$p - mean))
  }, 0))
  .htest(
    statistic, (length(groups) - 1) * nrow(weight), "Wald test of equal shares in all groups",
    paste(question, "by", paste(groups, collapse = ", "))
  )
}

.wald <- function(difference, variance, method, data) {
  if (anyNA(variance)) .invalid("the covariances are unknown", "table", "unsupported")
  statistic <- drop(t(difference) %*% solve(variance, difference))
  .htest(statistic, length(difference), method, data)
}

.htest <- function(statistic, df, method, data) {
  structure(
    list(
      statistic = c("X-squared" = statistic), parameter = c(df = df),
      p.value = stats::pchisq(statistic, df, lower.tail = FALSE), method = method, data.name = data
    ),
    class = "htest"
  )
}
