# SPDX-License-Identifier: Apache-2.0
# Post-stratified shares from counts, equal to survey::postStratify on the decoded scores.

# population : data frame of public columns of the counts and `N`, the size (or share) of each stratum.
poststratify <- function(counts, question, population = NULL) {
  parts <- .parts_of(counts, question)
  choices <- parts[[1]]$choices[[question]]
  weighing <- .stratum_weights(parts, population)
  group <- weighing$group
  total <- sum(weighing$n)
  means <- matrix(0, length(choices), length(weighing$weight))
  for (i in seq_along(parts)) {
    scores <- .scores_of(parts[[i]], question)
    sums <- scores %*% t(parts[[i]]$counts)
    for (h in seq_len(ncol(sums))) means[, group[[i]][h]] <- means[, group[[i]][h]] + sums[, h]
  }
  means <- sweep(means, 2, weighing$n, "/")
  estimate <- drop(means %*% (weighing$weight * weighing$n))
  # Linearised variance: within a stratum with a known total, only the deviations from its mean
  # vary.
  residual <- if (is.null(population)) matrix(estimate, length(choices), ncol(means)) else means
  variance <- 0
  for (i in seq_along(parts)) {
    scores <- .scores_of(parts[[i]], question)
    for (h in seq_len(nrow(parts[[i]]$counts))) {
      deviation <- scores - residual[, group[[i]][h]]
      weight <- weighing$weight[group[[i]][h]]^2 * parts[[i]]$counts[h, ]
      variance <- variance + deviation %*% (weight * t(deviation))
    }
  }
  dimnames(variance) <- list(choices, choices)
  structure(
    list(
      question = question, coefficients = stats::setNames(estimate, choices),
      vcov = variance * total / (total - 1), n = total, weighted = !is.null(population),
      # Kish's factor: n times the sum of squared weights, 1 without weights.
      weighting_effect = total * sum(weighing$weight^2 * weighing$n)
    ),
    class = "frankly_weighted"
  )
}

# Return, for each part, the population stratum, the reports and the weight per report of each of
# its strata; the weights of all reports sum to 1.
.stratum_weights <- function(parts, population) {
  if (is.null(population)) {
    n <- sum(vapply(parts, function(part) sum(part$strata$n), 0))
    if (n < 2) .invalid("there are too few reports", "counts", "strata_invalid")
    group <- lapply(parts, function(part) rep(1L, nrow(part$strata)))
    return(list(group = group, n = n, weight = 1 / n))
  }
  columns <- setdiff(names(population), "N")
  by <- names(parts[[1]]$strata)
  if (!is.data.frame(population) || !"N" %in% names(population) || !length(columns)) {
    .invalid("must be a data frame of public columns and N", "population", "weights_invalid")
  }
  if (!all(columns %in% setdiff(by, "n"))) {
    .invalid(
      sprintf("ask for counts(by = c(%s))", paste0('"', columns, '"', collapse = ", ")), "population",
      "weights_invalid"
    )
  }
  if (anyNA(population$N) || any(population$N <= 0)) {
    .invalid("every N must be above 0", "population", "weights_invalid")
  }
  key <- function(frame) do.call(paste, c(lapply(frame[columns], as.character), sep = "\r"))
  known <- key(population)
  if (anyDuplicated(known)) .invalid("a stratum occurs twice", "population", "weights_invalid")
  group <- lapply(parts, function(part) match(key(part$strata), known))
  if (anyNA(unlist(group))) {
    .invalid("a stratum of the counts is missing", "population", "weights_invalid")
  }
  n <- numeric(length(known))
  for (i in seq_along(parts)) {
    sums <- tapply(parts[[i]]$strata$n, factor(group[[i]], seq_along(known)), sum)
    n <- n + ifelse(is.na(sums), 0, sums)
  }
  if (any(n == 0)) {
    none <- paste(unlist(lapply(population[which(n == 0)[1], columns, drop = FALSE], as.character)), collapse = ", ")
    .invalid(
      sprintf("no counts of the stratum %s: merge it with another one", none), "population",
      "weights_invalid"
    )
  }
  list(group = group, n = as.numeric(n), weight = population$N / sum(population$N) / as.numeric(n))
}

coef.frankly_weighted <- function(object, ...) object$coefficients

vcov.frankly_weighted <- function(object, ...) object$vcov

nobs.frankly_weighted <- function(object, ...) object$n

SE.frankly_weighted <- function(object, ...) sqrt(diag(object$vcov))

confint.frankly_weighted <- function(object, parm, level = 0.95, ...) {
  .wald_interval(object$coefficients, sqrt(diag(object$vcov)), parm, level)
}

.wald_interval <- function(estimate, se, parm, level) {
  half <- (1 - level) / 2
  z <- stats::qnorm(1 - half)
  ends <- cbind(estimate - z * se, estimate + z * se)
  dimnames(ends) <- list(
    names(estimate), paste(format(100 * c(half, 1 - half), trim = TRUE, digits = 3), "%")
  )
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

print.frankly_weighted <- function(x, ...) {
  kind <- if (x$weighted) "post-stratified shares" else "shares"
  cat(sprintf("%s: %s of %s reports\n", x$question, kind, format(x$n)))
  se <- sqrt(diag(x$vcov))
  ends <- confint(x)
  shown <- data.frame(
    estimate = .shown(x$coefficients, "share", 1), SE = .shown(se, "share", 1),
    low = .shown(ends[, 1], "share", 1), high = .shown(ends[, 2], "share", 1),
    row.names = names(x$coefficients)
  )
  print(shown)
  cat(sprintf("Wald intervals at 0.95; weighting multiplies the variance by about %.2f.\n", x$weighting_effect))
  invisible(x)
}

tidy.frankly_weighted <- function(x, conf.level = 0.95, ...) {
  ends <- confint(x, level = conf.level)
  data.frame(
    term = names(x$coefficients), estimate = unname(x$coefficients),
    std.error = unname(sqrt(diag(x$vcov))), conf.low = ends[, 1], conf.high = ends[, 2],
    row.names = NULL, stringsAsFactors = FALSE
  )
}
