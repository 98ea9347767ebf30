# SPDX-License-Identifier: Apache-2.0
# Released counts of noisy symbols by stratum (spec 8.11).

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
      by = by, parts = lapply(body$parts, .part, by = by, levels = levels), body = body,
      language = language
    ),
    class = "frankly_counts"
  )
}

# law: P(symbol | joint answer), up to a factor for each symbol if `kind` is "sets". decoder: score of each symbol
# for each joint answer. counts: strata x symbols; rest: the same for the reports in no stratum, at most one row.
# symbols: their numbers, or sets as bit masks. of: for each question, a matrix of 0 and 1, choices x joint answers.
.part <- function(value, by, levels) {
  choices <- lapply(value$questions, function(question) {
    vapply(question$choices, function(choice) as.character(choice$id), "")
  })
  names(choices) <- vapply(value$questions, function(question) question$id, "")
  # Counted like one more stratum, so that both have the same columns.
  counted <- c(value$strata, if (!is.null(value$rest)) list(value$rest))
  tables <- if (value$kind == "sets") .sets(value, counted) else .tables(value, counted)
  inside <- seq_along(counted) <= length(value$strata)
  tables$rest <- tables$counts[!inside, , drop = FALSE]
  tables$counts <- tables$counts[inside, , drop = FALSE]
  c(
    list(
      document = value$document, version = value$version, arm = value$arm, kind = value$kind,
      n = value$n, minimum = value$minimum, questions = value$questions, choices = choices,
      of = .indicators(choices), strata = .strata(value$strata, by, levels),
      withheld = value$withheld, without_stratum = value$without_stratum,
      marginals = .marginals(value$marginals, ncol(tables$decoder))
    ),
    tables
  )
}

# Decoders of fewer questions, for use if the decoders of the joint answers do not suffice.
.marginals <- function(values, symbols) {
  lapply(values, function(value) {
    list(questions = unlist(value$questions), decoder = .matrix(value$decoder, symbols))
  })
}

.strata <- function(strata, by, levels) {
  columns <- lapply(stats::setNames(by, by), function(name) {
    values <- vapply(strata, function(one) as.character(one$by[[name]]), "")
    # An old version may have choices that the newest one lacks.
    factor(values, if (is.null(levels[[name]])) sort(unique(values)) else union(levels[[name]], values))
  })
  n <- vapply(strata, function(one) as.numeric(one$n), 0)
  if (!length(columns)) return(data.frame(n = n))
  data.frame(columns, n = n, check.names = FALSE)
}

.tables <- function(value, counted) {
  laws <- lapply(value$factors, function(one) .matrix(one$weights) / one$denominator)
  law <- Reduce(kronecker, laws)
  decoder <- Map(function(one, own) .matrix(one$decoder, ncol(own)), value$factors, laws)
  counts <- lapply(counted, `[[`, "counts")
  list(
    law = law, decoder = Reduce(kronecker, decoder), symbols = seq_len(ncol(law)) - 1,
    counts = if (length(counts)) .matrix(counts) else matrix(0, 0, ncol(law))
  )
}

# Symbols are the reported sets. A set's probability is larger by a fixed ratio if it contains the
# truth.
.sets <- function(value, counted) {
  one <- value$factors[[1]]
  size <- length(one$decoder)
  decoder <- .matrix(one$decoder, size + 1L)
  none <- length(value$factors) > 1L || any(vapply(counted, function(s) is.null(s$masks), NA))
  if (none) {
    return(list(law = NULL, decoder = NULL, symbols = numeric(), counts = matrix(0, length(counted), 0)))
  }
  pairs <- lapply(counted, function(stratum) .matrix(stratum$masks))
  masks <- as.numeric(sort(unique(unlist(lapply(pairs, function(pair) pair[, 1])))))
  members <- outer(0:(size - 1), masks, function(x, mask) floor(mask / 2^x) %% 2)
  counts <- t(vapply(pairs, function(pair) {
    at <- match(masks, pair[, 1])
    ifelse(is.na(at), 0, pair[at, 2])
  }, numeric(length(masks))))
  inside <- one$inside[[1]] / one$inside[[2]]
  outside <- one$outside[[1]] / one$outside[[2]]
  ratio <- inside * (1 - outside) / (outside * (1 - inside))
  if (identical(one$name, "subset")) {
    held <- if (length(masks)) sum(members[, 1]) else 1
    ratio <- inside / (1 - inside) * (size - held) / held
  }
  list(
    law = 1 + (ratio - 1) * members, decoder = decoder[, 1] + decoder[, -1] %*% members,
    symbols = masks, counts = matrix(counts, length(pairs))
  )
}

# A matrix of rows; a row that is null (its share cannot be estimated) is NA, and all of them may be.
.matrix <- function(rows, width = max(0L, lengths(rows))) {
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

# The smallest part of each document and arm that contains these questions.
.parts_of <- function(x, questions, field = "question", documents = NULL) {
  if (!inherits(x, "frankly_counts")) {
    .invalid("must be counts: counts(server, survey)", "counts", code = "field_type")
  }
  if (!is.character(questions) || !length(questions) || anyNA(questions) || anyDuplicated(questions)) {
    .invalid("must be ids of questions, each once", field, code = "field_type")
  }
  found <- Filter(function(part) all(questions %in% names(part$choices)), x$parts)
  if (!length(found)) .invalid("no part contains this, or all of these", field)
  if (!is.null(documents)) {
    held <- unique(vapply(found, function(part) part$document, ""))
    if (!is.character(documents) || !all(documents %in% held)) {
      .invalid(paste("must be digests of documents:", paste(held, collapse = ", ")), "documents")
    }
    found <- Filter(function(part) part$document %in% documents, found)
  }
  sources <- vapply(found, function(part) paste(part$document, part$arm), "")
  found <- lapply(split(found, factor(sources, unique(sources))), function(parts) {
    parts[[which.min(vapply(parts, function(part) length(part$choices), 1L))]]
  })
  if (any(vapply(found, function(part) is.null(part$decoder), NA))) {
    .invalid("the sets of this question are too large to be counted one by one", field, "unsupported")
  }
  same <- vapply(found, function(part) {
    identical(part$choices[questions], found[[1]]$choices[questions])
  }, NA)
  if (!all(same)) .invalid("its choices differ between versions or arms", field, "unsupported")
  unname(found)
}

# Scores of the choices of a question, or of the cells of a table of several, x symbols; NA for a share that cannot
# be estimated. Cells are row-major in the order of the questions.
.scores_of <- function(part, questions) {
  cells <- .cells(part, questions)
  for (marginal in part$marginals) {
    if (setequal(marginal$questions, questions)) {
      key <- function(rows) apply(rows, 1, paste, collapse = "")
      order <- match(key(cells), key(.cells(part, marginal$questions)))
      return(marginal$decoder[order, , drop = FALSE])
    }
  }
  .weighted_rows(cells, part$decoder)
}

# Cells x joint answers, 0 and 1.
.cells <- function(part, questions) {
  Reduce(function(a, b) {
    a[rep(seq_len(nrow(a)), each = nrow(b)), , drop = FALSE] *
      b[rep(seq_len(nrow(b)), nrow(a)), , drop = FALSE]
  }, part$of[questions])
}

# Weighted sums of rows of scores; NA if a row with a weight is NA, or if no row has a weight.
.weighted_rows <- function(weights, rows) {
  unknown <- rowSums(is.na(rows)) > 0
  rows[unknown, ] <- 0
  sums <- weights %*% rows
  used <- weights != 0
  sums[used %*% unknown > 0 | rowSums(used) == 0, ] <- NA
  sums
}

as.data.frame.frankly_counts <- function(x, row.names = NULL, optional = FALSE, ...) {
  arms <- .has_arms(x$parts)
  rows <- lapply(x$parts, function(part) {
    at <- expand.grid(symbol = seq_len(ncol(part$counts)), stratum = seq_len(nrow(part$counts)))
    data.frame(
      .source(part, arms, nrow(at)),
      questions = rep(paste(names(part$choices), collapse = " \u00d7 "), nrow(at)),
      part$strata[at$stratum, x$by, drop = FALSE], n = part$strata$n[at$stratum],
      symbol = part$symbols[at$symbol], count = part$counts[cbind(at$stratum, at$symbol)],
      check.names = FALSE, row.names = NULL, stringsAsFactors = FALSE
    )
  })
  frame <- do.call(rbind, rows)
  if (!is.null(row.names)) row.names(frame) <- row.names
  frame
}

.has_arms <- function(parts) !all(vapply(parts, function(part) is.null(part$arm), NA))

# Columns of the document that a part is from; a version of a survey with arms may have none.
.source <- function(part, arms, rows) {
  arm <- if (is.null(part$arm)) NA_character_ else part$arm
  c(list(version = rep(part$version, rows)), if (arms) list(arm = rep(arm, rows)))
}

print.frankly_counts <- function(x, ...) {
  by <- if (length(x$by)) paste(" by", paste(x$by, collapse = ", ")) else ""
  cat(sprintf("%s: noisy counts of %s reports%s\n", x$title, format(x$n), by))
  for (part in x$parts) {
    cat(sprintf(
      "  %s (version %s%s): %d strata, n %s\n", paste(names(part$choices), collapse = " x "),
      format(part$version), if (is.null(part$arm)) "" else paste(", arm", part$arm), nrow(part$strata), format(sum(part$strata$n))
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
