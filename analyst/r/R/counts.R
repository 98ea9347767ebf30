# SPDX-License-Identifier: Apache-2.0
# Released counts of noisy symbols by stratum (spec 8.11), and the decoded scores of symbols.

counts <- function(server, survey, by = NULL, questions = NULL, since = NULL, until = NULL,
                   language = NULL) {
  survey <- .survey_id(server, survey)
  given <- list(by = by, questions = questions, since = since, until = until)
  query <- lapply(Filter(length, given), function(value) paste(as.character(value), collapse = ","))
  body <- .ask(server, "GET", .path(survey, "counts"), query = query)
  .counts(body, language)
}

.counts <- function(body, language = NULL) {
  by <- as.character(unlist(body$by))
  levels <- lapply(body$strata_questions, function(question) {
    vapply(question$choices, function(choice) as.character(choice$id), "")
  })
  names(levels) <- vapply(body$strata_questions, function(question) question$id, "")
  structure(
    list(
      survey = body$survey, title = .localised(body$title, language, body$languages), n = body$n,
      by = by, parts = lapply(body$parts, .part, by = by, levels = levels), body = body
    ),
    class = "frankly_counts"
  )
}

# law: P(symbol | joint answer), up to a factor for each symbol if `kind` is "sets". decoder: score of each symbol
# for each joint answer. counts: strata x symbols. of: for each question, a matrix of 0 and 1,
# choices x joint answers.
.part <- function(value, by, levels) {
  choices <- lapply(value$questions, function(question) {
    vapply(question$choices, function(choice) as.character(choice$id), "")
  })
  names(choices) <- vapply(value$questions, function(question) question$id, "")
  strata <- .strata(value$strata, by, levels)
  tables <- if (value$kind == "sets") .sets(value) else .tables(value)
  c(
    list(
      document = value$document, version = value$version, kind = value$kind, n = value$n,
      minimum = value$minimum, choices = choices, of = .indicators(choices), strata = strata,
      withheld = value$withheld, without_stratum = value$without_stratum
    ),
    list(marginals = .marginals(value$marginals)), tables
  )
}

# Decoders of single questions, for use if the decoders of the joint answers do not suffice.
.marginals <- function(values) {
  one <- Filter(function(value) length(value$questions) == 1L, values)
  stats::setNames(
    lapply(one, function(value) .matrix(value$decoder)),
    vapply(one, function(value) value$questions[[1]], "")
  )
}

.strata <- function(strata, by, levels) {
  columns <- lapply(stats::setNames(by, by), function(name) {
    values <- vapply(strata, function(one) as.character(one$by[[name]]), "")
    factor(values, if (is.null(levels[[name]])) sort(unique(values)) else levels[[name]])
  })
  n <- vapply(strata, function(one) as.numeric(one$n), 0)
  if (!length(columns)) return(data.frame(n = n))
  data.frame(columns, n = n, check.names = FALSE)
}

.tables <- function(value) {
  law <- lapply(value$factors, function(one) .matrix(one$weights) / one$denominator)
  decoder <- lapply(value$factors, function(one) .matrix(one$decoder))
  counted <- .matrix(lapply(value$strata, `[[`, "counts"))
  list(
    law = Reduce(kronecker, law), decoder = Reduce(kronecker, decoder),
    counts = if (length(value$strata)) counted else matrix(0, 0, ncol(Reduce(kronecker, law)))
  )
}

# Symbols are the reported sets. A set's probability is larger by a fixed ratio if it contains the
# truth.
.sets <- function(value) {
  one <- value$factors[[1]]
  decoder <- .matrix(one$decoder)
  size <- ncol(decoder) - 1L
  none <- length(value$factors) > 1L || any(vapply(value$strata, function(s) is.null(s$masks), NA))
  if (none) {
    return(list(law = NULL, decoder = NULL, counts = matrix(0, length(value$strata), 0)))
  }
  pairs <- lapply(value$strata, function(stratum) .matrix(stratum$masks))
  masks <- sort(unique(unlist(lapply(pairs, function(pair) pair[, 1]))))
  members <- outer(0:(size - 1), masks, function(x, mask) floor(mask / 2^x) %% 2)
  counted <- t(vapply(pairs, function(pair) {
    at <- match(masks, pair[, 1])
    ifelse(is.na(at), 0, pair[at, 2])
  }, numeric(length(masks))))
  inside <- one$inside[[1]] / one$inside[[2]]
  outside <- one$outside[[1]] / one$outside[[2]]
  ratio <- inside * (1 - outside) / (outside * (1 - inside))
  if (identical(one$name, "subset")) {
    held <- sum(members[, 1])
    ratio <- inside / (1 - inside) * (size - held) / held
  }
  list(
    law = 1 + (ratio - 1) * members, decoder = decoder[, 1] + decoder[, -1] %*% members,
    counts = matrix(counted, length(pairs))
  )
}

# A matrix of rows; a row that is null (its share cannot be estimated) is NA.
.matrix <- function(rows) {
  width <- max(0L, lengths(rows))
  values <- vapply(rows, function(row) {
    if (is.null(row)) rep(NA_real_, width) else as.numeric(unlist(row))
  }, numeric(width))
  matrix(values, length(rows), width, byrow = TRUE)
}

# Joint answers are row-major: the last question varies fastest.
.indicators <- function(choices) {
  sizes <- lengths(choices)
  at <- lapply(seq_along(sizes), function(i) {
    after <- prod(sizes[seq_along(sizes) > i])
    place <- rep(rep(seq_len(sizes[i]), each = after), prod(sizes[seq_along(sizes) < i]))
    1 * outer(seq_len(sizes[i]), place, "==")
  })
  stats::setNames(at, names(choices))
}

# The smallest part of each document that contains a question.
.parts_of <- function(x, question) {
  if (!inherits(x, "frankly_counts")) {
    .invalid("must be counts: counts(server, survey)", "counts", code = "field_type")
  }
  .is_text(question, "question")
  found <- Filter(function(part) question %in% names(part$choices), x$parts)
  if (!length(found)) .invalid("no part contains this question", "question")
  documents <- vapply(found, `[[`, "", "document")
  found <- lapply(split(found, factor(documents, unique(documents))), function(parts) {
    parts[[which.min(vapply(parts, function(part) length(part$choices), 1L))]]
  })
  if (any(vapply(found, function(part) is.null(part$decoder), NA))) {
    .invalid("the sets of this question are too large to be counted", "question", "unsupported")
  }
  same <- vapply(found, function(part) {
    identical(part$choices[[question]], found[[1]]$choices[[question]])
  }, NA)
  if (!all(same)) .invalid("its choices differ between versions", "question", "unsupported")
  unname(found)
}

# Scores of the choices of a question, choices x symbols; NA for a choice whose share cannot be estimated.
.scores_of <- function(part, question) {
  cells <- part$of[[question]]
  if (!is.null(part$marginals[[question]])) {
    scores <- part$marginals[[question]]
    rownames(scores) <- part$choices[[question]]
    return(scores)
  }
  unknown <- is.na(part$decoder[, 1])
  known <- part$decoder
  known[unknown, ] <- 0
  scores <- cells %*% known
  scores[cells %*% unknown > 0, ] <- NA
  rownames(scores) <- part$choices[[question]]
  scores
}

# One row for each stratum and symbol, or with `expand` for each report, with one column of scores for each choice.
decoded <- function(counts, question, expand = FALSE) {
  rows <- lapply(.parts_of(counts, question), function(part) {
    scores <- .scores_of(part, question)
    at <- which(part$counts > 0, arr.ind = TRUE)
    at <- at[order(at[, 1], at[, 2]), , drop = FALSE]
    data.frame(
      version = rep(part$version, nrow(at)),
      part$strata[at[, 1], counts$by, drop = FALSE], symbol = at[, 2] - 1L,
      t(scores)[at[, 2], , drop = FALSE], count = part$counts[at], check.names = FALSE,
      row.names = NULL
    )
  })
  frame <- do.call(rbind, rows)
  if (!isTRUE(expand)) return(frame)
  expanded <- frame[rep(seq_len(nrow(frame)), frame$count), names(frame) != "count", drop = FALSE]
  row.names(expanded) <- NULL
  expanded
}

as.data.frame.frankly_counts <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- lapply(x$parts, function(part) {
    at <- expand.grid(symbol = seq_len(ncol(part$counts)), stratum = seq_len(nrow(part$counts)))
    data.frame(
      version = rep(part$version, nrow(at)),
      questions = rep(paste(names(part$choices), collapse = " \u00d7 "), nrow(at)),
      part$strata[at$stratum, x$by, drop = FALSE], n = part$strata$n[at$stratum],
      symbol = at$symbol - 1L, count = part$counts[cbind(at$stratum, at$symbol)],
      check.names = FALSE, row.names = NULL, stringsAsFactors = FALSE
    )
  })
  frame <- do.call(rbind, rows)
  if (!is.null(row.names)) row.names(frame) <- row.names
  frame
}

print.frankly_counts <- function(x, ...) {
  by <- if (length(x$by)) paste(" by", paste(x$by, collapse = ", ")) else ""
  cat(sprintf("%s: noisy counts of %s reports%s\n", x$title, format(x$n), by))
  for (part in x$parts) {
    cat(sprintf(
      "  %s (version %s): %d strata, n %s\n", paste(names(part$choices), collapse = " x "),
      format(part$version), nrow(part$strata), format(sum(part$strata$n))
    ))
    if (part$withheld$strata > 0) {
      cat(sprintf(
        "    %d strata of fewer than %d reports withheld, with %d reports\n",
        part$withheld$strata, part$minimum, part$withheld$reports
      ))
    }
  }
  invisible(x)
}
