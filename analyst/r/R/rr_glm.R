# SPDX-License-Identifier: Apache-2.0
# Logistic regression of a randomised answer on public questions, from counts by stratum.

rr_glm <- function(formula, counts, event = NULL, population = NULL,
                   method = c("auto", "likelihood", "scores"), maxit = 50, epsilon = 1e-9) {
  if (!inherits(formula, "formula") || length(formula) != 3L) {
    .invalid("must be a formula: question ~ public questions", "formula", "field_type")
  }
  question <- as.character(formula[[2]])
  parts <- .parts_of(counts, question)
  method <- match.arg(method)
  choices <- parts[[1]]$choices[[question]]
  alone <- all(vapply(parts, function(part) length(part$choices) == 1L, NA))
  two <- length(choices) == 2L
  event <- .event(event, choices)
  merged <- !is.null(event) && !two
  if (method == "auto") method <- if (alone && !merged) "likelihood" else "scores"
  if (method == "likelihood" && (!alone || merged)) {
    .invalid("this question needs method = \"scores\"", "method", "unsupported")
  }
  weighing <- .stratum_weights(parts, population)
  data <- .modelled(parts, formula, question, choices, event, method, weighing)
  fit <- .fitted(data, method, maxit, epsilon)
  terms <- colnames(data$pieces[[1]]$x)
  answers <- data$answers[-1]
  names <- if (length(answers) == 1L) terms else paste(rep(answers, each = length(terms)), terms, sep = ":")
  dimnames(fit$vcov) <- dimnames(fit$model) <- list(names, names)
  structure(
    list(
      coefficients = stats::setNames(fit$beta, names), vcov = fit$vcov, model_vcov = fit$model,
      loglik = fit$value, n = sum(weighing$n), method = method, question = question,
      answers = data$answers, formula = formula, terms = data$terms, xlevels = data$xlevels,
      iterations = fit$iterations, weighted = !is.null(population), call = match.call()
    ),
    class = "rr_glm"
  )
}

.event <- function(event, choices) {
  if (is.null(event)) return(NULL)
  if (!is.character(event) || !length(event) || !all(event %in% choices) || anyDuplicated(event) ||
      length(event) == length(choices)) {
    .invalid(
      sprintf("must be some of the choices %s", paste(choices, collapse = ", ")), "event"
    )
  }
  event
}

# Return model matrices and, for each part, the law or the scores of the modelled answers; the first answer is the
# reference.
.modelled <- function(parts, formula, question, choices, event, method, weighing) {
  right <- stats::terms(stats::delete.response(stats::terms(formula)))
  strata <- do.call(rbind, lapply(parts, function(part) droplevels(part$strata)))
  missing <- setdiff(all.vars(right), names(strata))
  missing <- missing[!vapply(missing, exists, NA, envir = environment(formula))]
  if (length(missing)) {
    .invalid(sprintf("%s is not in the counts: name it in by", missing[1]), "formula", "strata_invalid")
  }
  frame <- stats::model.frame(right, strata)
  x <- stats::model.matrix(right, frame)
  if (qr(x * sqrt(strata$n))$rank < ncol(x)) {
    .invalid("the terms are collinear in these strata", "formula", "not_identifiable")
  }
  merge <- diag(length(choices))
  answers <- choices
  if (!is.null(event)) {
    merge <- rbind(1 - choices %in% event, 1 * choices %in% event)
    other <- setdiff(choices, event)
    answers <- c(if (length(other) == 1L) other else "other", paste(event, collapse = " + "))
  }
  from <- 0
  pieces <- lapply(seq_along(parts), function(i) {
    part <- parts[[i]]
    rows <- from + seq_len(nrow(part$strata))
    from <<- from + nrow(part$strata)
    weight <- weighing$weight[weighing$group[[i]]] * sum(weighing$n)
    law <- if (method == "likelihood") part$law else merge %*% .scores_of(part, question)
    if (method == "likelihood" && !is.null(event) && event == choices[1]) {
      law <- law[2:1, , drop = FALSE]
    }
    if (anyNA(law)) .invalid("this share cannot be estimated", "event", "not_identifiable")
    seen <- colSums(part$counts) > 0
    list(
      x = x[rows, , drop = FALSE], counts = part$counts[, seen, drop = FALSE],
      law = law[, seen, drop = FALSE], weight = weight
    )
  })
  list(
    pieces = pieces, answers = answers, terms = right,
    xlevels = stats::.getXlevels(right, frame)
  )
}

# Maximise by Newton's method with halved steps; return estimates, value and both covariance matrices.
.fitted <- function(data, method, maxit, epsilon) {
  step <- if (method == "likelihood") .likelihood else .scores
  total <- function(beta) {
    parts <- lapply(data$pieces, step, beta = beta, free = length(data$answers) - 1L)
    Reduce(function(a, b) Map(`+`, a, b), parts)
  }
  beta <- numeric(ncol(data$pieces[[1]]$x) * (length(data$answers) - 1L))
  now <- total(beta)
  for (i in seq_len(maxit)) {
    # The observed information need not be positive definite far from the maximum; that of known
    # answers always is.
    root <- tryCatch(chol(now$observed), error = function(e) NULL)
    if (is.null(root)) root <- tryCatch(chol(now$complete), error = function(e) .no_estimate())
    move <- backsolve(root, backsolve(root, now$gradient, transpose = TRUE))
    size <- 1
    repeat {
      after <- total(beta + size * move)
      if (is.finite(after$value) && after$value >= now$value - 1e-9 * abs(now$value)) break
      size <- size / 2
      if (size < 1e-10) .no_estimate()
    }
    beta <- beta + size * move
    done <- sum(move * now$gradient) < epsilon
    now <- after
    if (max(abs(now$extreme)) > 0) .no_estimate()
    if (done) break
  }
  if (!done) .no_estimate()
  bread <- tryCatch(chol2inv(chol(now$observed)), error = function(e) .no_estimate())
  list(
    beta = beta, value = now$value, vcov = bread %*% now$meat %*% bread, model = bread,
    iterations = i
  )
}

.no_estimate <- function() {
  .invalid(
    "no finite estimate: in some stratum the estimated share lies at or beyond 0 or 1; use fewer terms or merge strata",
    "formula", "not_identifiable"
  )
}

.probabilities <- function(x, beta, free) {
  eta <- cbind(0, x %*% matrix(beta, ncol(x), free))
  eta <- eta - apply(eta, 1, max)
  exp(eta) / rowSums(exp(eta))
}

# Each report y in a stratum with covariates x has log P = log sum_s pi_s(x) law[s, y]. With r_s the probability of
# answer s given y, the derivative by the predictor of s is r_s - pi_s.
.likelihood <- function(piece, beta, free) {
  pi <- .probabilities(piece$x, beta, free)
  chance <- pi %*% piece$law
  n <- piece$counts * piece$weight
  ratio <- n / chance
  given <- pi * (ratio %*% t(piece$law))
  twice <- lapply(seq_len(free + 1L), function(k) {
    pi[, k] * pi * ((ratio / chance) %*% t(piece$law * rep(piece$law[k, ], each = free + 1L)))
  })
  .assembled(piece, pi, rowSums(n), given, twice, piece$weight, sum(n * log(chance)), TRUE)
}

# The scores d of a report have the mean pi(x): solve sum of x (d - pi(x)) = 0.
.scores <- function(piece, beta, free) {
  pi <- .probabilities(piece$x, beta, free)
  n <- piece$counts * piece$weight
  given <- n %*% t(piece$law)
  twice <- lapply(seq_len(free + 1L), function(k) {
    n %*% t(piece$law * rep(piece$law[k, ], each = free + 1L))
  })
  value <- sum(given * log(pmax(pi, 1e-300)))
  .assembled(piece, pi, rowSums(n), given, twice, piece$weight, value, FALSE)
}

.assembled <- function(piece, pi, n, given, twice, weight, value, hidden) {
  keep <- seq_len(ncol(pi))[-1]
  size <- length(keep)
  p <- ncol(piece$x)
  observed <- complete <- meat <- matrix(0, size * p, size * p)
  for (a in seq_len(size)) {
    for (b in seq_len(size)) {
      k <- keep[a]
      l <- keep[b]
      known <- n * ((k == l) * pi[, k] - pi[, k] * pi[, l])
      seen <- if (hidden) known - ((k == l) * given[, k] - twice[[k]][, l]) else known
      spread <- twice[[k]][, l] - given[, k] * pi[, l] - pi[, k] * given[, l] + n * pi[, k] * pi[, l]
      at <- (a - 1) * p + seq_len(p)
      to <- (b - 1) * p + seq_len(p)
      complete[at, to] <- crossprod(piece$x, known * piece$x)
      observed[at, to] <- crossprod(piece$x, seen * piece$x)
      meat[at, to] <- crossprod(piece$x, weight * spread * piece$x)
    }
  }
  gradient <- as.vector(crossprod(piece$x, (given - n * pi)[, keep, drop = FALSE]))
  list(
    value = value, gradient = gradient, observed = observed, complete = complete, meat = meat,
    # Shares this close to 0 are estimates at the boundary.
    extreme = sum(pi < 1e-7)
  )
}
