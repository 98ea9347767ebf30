# SPDX-License-Identifier: Apache-2.0
# Methods of fitted models, as of stats::glm.

coef.rr_glm <- function(object, ...) object$coefficients

vcov.rr_glm <- function(object, type = c("sandwich", "model"), ...) {
  if (match.arg(type) == "model") object$model_vcov else object$vcov
}

SE.rr_glm <- function(object, ...) sqrt(diag(object$vcov))

nobs.rr_glm <- function(object, ...) object$n

logLik.rr_glm <- function(object, ...) {
  if (object$method != "likelihood" || object$weighted) {
    .invalid("this model was not fitted by maximum likelihood", "object", "unsupported")
  }
  structure(
    object$loglik, df = length(object$coefficients), nobs = object$n, class = "logLik"
  )
}

confint.rr_glm <- function(object, parm, level = 0.95, ...) {
  .wald_interval(object$coefficients, sqrt(diag(object$vcov)), parm, level)
}

predict.rr_glm <- function(object, newdata, type = c("response", "link"), ...) {
  if (missing(newdata) || !is.data.frame(newdata)) {
    .invalid("must be a data frame of the public questions", "newdata", "field_type")
  }
  type <- match.arg(type)
  frame <- stats::model.frame(object$terms, newdata, xlev = object$xlevels)
  x <- stats::model.matrix(object$terms, frame)
  free <- length(object$answers) - 1L
  link <- x %*% matrix(object$coefficients, ncol(x), free)
  values <- if (type == "link") link else .probabilities(x, object$coefficients, free)[, -1, drop = FALSE]
  if (free == 1L) return(drop(values))
  colnames(values) <- object$answers[-1]
  values
}

summary.rr_glm <- function(object, ...) {
  se <- sqrt(diag(object$vcov))
  z <- object$coefficients / se
  table <- cbind(
    Estimate = object$coefficients, "Std. Error" = se, "z value" = z,
    "Pr(>|z|)" = 2 * stats::pnorm(-abs(z))
  )
  structure(c(unclass(object), list(table = table)), class = "summary.rr_glm")
}

print.rr_glm <- function(x, ...) {
  .head(x)
  print(x$coefficients)
  invisible(x)
}

print.summary.rr_glm <- function(x, ...) {
  .head(x)
  stats::printCoefmat(x$table)
  cat("Standard errors are of the sandwich form.\n")
  if (x$method == "likelihood" && !x$weighted) {
    cat(sprintf(
      "Log-likelihood %.2f (df %d), AIC %.1f\n", x$loglik, length(x$coefficients),
      2 * length(x$coefficients) - 2 * x$loglik
    ))
  }
  invisible(x)
}

.head <- function(x) {
  cat(sprintf(
    "Logistic regression of %s (%s) through the randomisation\n", x$question,
    paste(x$answers[-1], collapse = ", ")
  ))
  cat(sprintf(
    "%s; reference: %s; n %s%s; by %s\n", paste(deparse(x$formula), collapse = " "), x$answers[1],
    format(x$n), if (x$weighted) ", weighted" else "",
    if (x$method == "likelihood") "maximum likelihood" else "decoded scores"
  ))
}

tidy.rr_glm <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, ...) {
  table <- summary(x)$table
  frame <- data.frame(
    term = rownames(table), estimate = table[, 1], std.error = table[, 2], statistic = table[, 3],
    p.value = table[, 4], row.names = NULL, stringsAsFactors = FALSE
  )
  if (conf.int) {
    ends <- confint(x, level = conf.level)
    frame$conf.low <- ends[, 1]
    frame$conf.high <- ends[, 2]
  }
  if (exponentiate) {
    columns <- intersect(c("estimate", "conf.low", "conf.high"), names(frame))
    frame[columns] <- exp(frame[columns])
  }
  frame
}

glance.rr_glm <- function(x, ...) {
  likelihood <- x$method == "likelihood" && !x$weighted
  value <- if (likelihood) x$loglik else NA_real_
  df <- length(x$coefficients)
  data.frame(
    logLik = value, AIC = 2 * df - 2 * value, BIC = log(x$n) * df - 2 * value, nobs = x$n,
    df = df, method = x$method, stringsAsFactors = FALSE
  )
}
