# SPDX-License-Identifier: Apache-2.0
# Methods of estimates: the generics of stats, survey and broom.

as.data.frame.frankly_estimates <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- x$rows
  if (!is.null(row.names)) row.names(rows) <- row.names
  rows
}

coef.frankly_estimates <- function(object, ...) {
  stats::setNames(object$rows$estimate, .terms(object$rows))
}

SE.frankly_estimates <- function(object, ...) {
  stats::setNames(object$rows$se, .terms(object$rows))
}

nobs.frankly_estimates <- function(object, ...) object$n

# The server does not compute covariances between questions, so they are NA. Groups of a public
# question contain different people, so their estimates are independent.
vcov.frankly_estimates <- function(object, ...) {
  terms <- .terms(object$rows)
  matrix <- matrix(NA_real_, length(terms), length(terms), dimnames = list(terms, terms))
  by <- object$rows$by
  # A population consists of the reports of its groups.
  time <- grepl("(^| )(version|day|week|month|weighted)=", by)
  matrix[outer(by, by, "!=") & !outer(time, time, "|")] <- 0
  diag(matrix) <- object$rows$se^2
  for (question in object$body$questions) {
    at <- which(object$rows$question == question$id & by == .group(question$by))
    known <- question$covariance
    if (length(known) == length(at) && length(at)) {
      matrix[at, at] <- matrix(unlist(known), length(at), byrow = TRUE)
    }
  }
  matrix
}

.group <- function(by) {
  if (!length(by)) return("")
  paste(names(by), unlist(by), sep = "=", collapse = " ")
}

# The server computes the intervals, so another level needs a new request.
confint.frankly_estimates <- function(object, parm, level = object$request$level, ...) {
  if (!isTRUE(all.equal(level, object$request$level))) {
    if (is.null(object$server) || "combination" %in% unlist(lapply(object$request$targets, names))) {
      .invalid("ask for this level with estimates(level = )", "level", code = "unsupported")
    }
    request <- object$request
    request$level <- level
    object <- do.call(estimates, c(
      list(server = object$server, survey = object$survey, language = object$language), request
    ))
  }
  ends <- cbind(object$rows$low, object$rows$high)
  half <- (1 - level) / 2
  dimnames(ends) <- list(
    .terms(object$rows), paste(format(100 * c(half, 1 - half), trim = TRUE, digits = 3), "%")
  )
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

print.frankly_estimates <- function(x, digits = 1, ...) {
  cat(sprintf("%s: %s reports\n", x$title, format(x$n)))
  rows <- x$rows
  if (length(rows) && nrow(rows)) {
    for (question in unique(rows$question)) {
      part <- rows[rows$question == question, ]
      cat(sprintf(
        "%s (%s, %s, epsilon %s, ceiling %s)\n",
        question, part$mechanism[1], part$notion[1], part$epsilon[1], part$ceiling[1]
      ))
      label <- paste0(part$label, ifelse(nzchar(part$by), paste0(" (", part$by, ")"), ""))
      shown <- data.frame(
        estimate = .shown(part$estimate, part$unit, digits),
        low = .shown(part$low, part$unit, digits), high = .shown(part$high, part$unit, digits),
        n = part$n, flags = part$flags, row.names = make.unique(paste0("  ", label))
      )
      if (!any(nzchar(shown$flags))) shown$flags <- NULL
      print(shown)
    }
    cat(sprintf("Intervals at %s by %s.\n", format(rows$level[1]), rows$method[1]))
  }
  for (question in x$body$questions) {
    if (identical(question$status, "ok")) next
    group <- .group(question$by)
    cat(sprintf(
      "%s%s: not enough reports, %d more needed\n", question$id,
      if (nzchar(group)) paste0(" (", group, ")") else "", question$needed - question$n
    ))
  }
  invisible(x)
}

.shown <- function(value, unit, digits) {
  text <- ifelse(
    rep_len(unit == "share", length(value)), sprintf("%.*f%%", digits, 100 * value),
    sprintf("%.*f", digits + 2, value)
  )
  ifelse(is.na(value), "unbounded", text)
}

summary.frankly_estimates <- function(object, ...) {
  rows <- object$rows
  rows[c(
    "question", "choice", "by", "estimate", "se", "low", "high", "se_privacy", "se_sampling", "n", "flags"
  )]
}

plot.frankly_estimates <- function(x, ...) {
  rows <- x$rows[!is.na(x$rows$estimate), ]
  if (!nrow(rows)) .invalid("there are no estimates to plot", "x")
  label <- paste0(rows$label, ifelse(nzchar(rows$by), paste0(" (", rows$by, ")"), ""))
  at <- rev(seq_len(nrow(rows)))
  ends <- range(0, rows$low, rows$high, rows$estimate, na.rm = TRUE)
  old <- graphics::par(mar = c(4, 2 + 0.5 * max(nchar(label)), 2, 1))
  on.exit(graphics::par(old))
  graphics::plot(
    rows$estimate, at, xlim = ends, yaxt = "n", ylab = "", pch = 19, main = x$title,
    xlab = sprintf("estimate and interval at %s", format(rows$level[1])), ...
  )
  graphics::abline(v = 0, col = "grey")
  graphics::segments(rows$low, at, rows$high, at)
  graphics::axis(2, at = at, labels = label, las = 1)
  invisible(x)
}

tidy.frankly_estimates <- function(x, ...) {
  rows <- x$rows
  data.frame(
    term = .terms(rows), question = rows$question, choice = rows$choice, by = rows$by,
    estimate = rows$estimate, std.error = rows$se, conf.low = rows$low, conf.high = rows$high,
    stringsAsFactors = FALSE
  )
}

glance.frankly_estimates <- function(x, ...) {
  data.frame(
    nobs = x$n, questions = length(unique(x$rows$question)), level = x$request$level,
    method = x$rows$method[1], stringsAsFactors = FALSE
  )
}
