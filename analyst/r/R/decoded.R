# SPDX-License-Identifier: Apache-2.0
# Decoded scores by public answers and symbol, the same table as Counts.table of the Python client.

LONGEST_NAME <- 31L
# Names that SPSS or Stata keep for themselves.
RESERVED <- "^(all|and|by|byte|double|eq|float|ge|gt|if|in|int|le|long|lt|ne|not|or|str[0-9]*|strl|to|using|with)$"

# One row for each stratum and symbol, or with `expand` for each report, with one column for each score.
decoded <- function(counts, questions, complete = FALSE, expand = FALSE, documents = NULL) {
  parts <- .parts_of(counts, questions, "questions", documents)
  text <- function(texts) .localised(texts, counts$language, counts$body$languages)
  # Texts, scores and roles are those of the newest version, as in estimates.
  newest <- which.max(vapply(parts, function(part) as.numeric(part$version), 0))
  scores <- .described(parts[[newest]], questions, text)
  rows <- lapply(parts, function(part) {
    do.call(rbind, lapply(scores, function(one) {
      .weighted_rows(one$weights, .scores_of(part, one$questions))
    }))
  })
  # A score that one version cannot estimate would have no mean over all reports.
  known <- Reduce(`&`, lapply(rows, function(one) rowSums(is.na(one)) == 0))
  if (!any(known)) {
    .invalid("no number of reports can estimate a share of these questions", "questions", "unsupported")
  }
  arms <- .has_arms(parts)
  columns <- c(
    .design_columns(counts, arms, text),
    stats::setNames(
      unlist(lapply(scores, `[[`, "labels"))[known], unlist(lapply(scores, `[[`, "ids"))[known]
    )
  )
  labels <- c(
    stats::setNames(columns, .column_names(names(columns))),
    count = "Number of reports with this row: a frequency weight, not a sampling weight."
  )
  frame <- do.call(rbind, Map(function(part, one) {
    counted <- rbind(part$counts, if (!isTRUE(complete)) part$rest)
    at <- which(counted > 0, arr.ind = TRUE)
    at <- at[order(at[, 1], at[, 2]), , drop = FALSE]
    list2DF(stats::setNames(
      c(
        .source(part, arms, nrow(at)),
        # The reports in no stratum are in a row below the last one, so their public answers are NA.
        part$strata[at[, 1], counts$by, drop = FALSE], list(part$symbols[at[, 2]]),
        lapply(which(known), function(i) one[i, at[, 2]]), list(counted[at])
      ),
      names(labels)
    ))
  }, parts, rows))
  if (!nrow(frame)) .invalid("no stratum has enough reports: request fewer public questions, or more days", "by")
  if (isTRUE(expand)) {
    frame <- frame[rep(seq_len(nrow(frame)), frame$count), names(frame) != "count", drop = FALSE]
    row.names(frame) <- NULL
  }
  attr(frame, "labels") <- labels[names(frame)]
  frame
}

# Labels of the columns before the scores, by the source of their name.
.design_columns <- function(counts, arms, text) {
  asked <- counts$body$strata_questions
  names(asked) <- vapply(asked, function(question) question$id, "")
  public <- vapply(counts$by, function(name) {
    if (!is.null(asked[[name]])) return(text(asked[[name]]$text))
    paste0(toupper(substr(name, 1, 1)), substring(name, 2), " of release, in UTC.")
  }, "")
  c(
    version = "Version of the document; a stratum of the sample if there are several.",
    if (arms) c(arm = "Arm of the survey that the device drew; a stratum of the sample."),
    public, symbol = "Noisy symbol: its number in the document, or the set as a bit mask."
  )
}

# Return ids, labels and weights of the scores of each question, and of the cells of a table of several: a score is
# the sum, with these weights, of the scores of the choices or cells.
.described <- function(part, questions, text) {
  asked <- part$questions[match(questions, names(part$choices))]
  of_scales <- c(score = "score of the answer, 0 if it is none", answered = "answered")
  one <- lapply(asked, function(question) {
    choices <- vapply(question$choices, function(choice) text(choice$label), "")
    scales <- .scales_of(question)
    ids <- c(part$choices[[question$id]], names(scales))
    list(
      questions = question$id, ids = paste(question$id, ids, sep = "_"),
      labels = paste0(question$id, ": ", c(choices, of_scales[names(scales)])),
      weights = do.call(rbind, c(list(diag(length(choices))), unname(scales)))
    )
  })
  if (length(questions) == 1L) return(one)
  size <- lengths(part$choices[questions])
  joined <- function(field, sep) {
    Reduce(
      function(a, b) paste(rep(a, each = length(b)), rep(b, length(a)), sep = sep),
      Map(function(score, k) score[[field]][seq_len(k)], one, size)
    )
  }
  cells <- list(
    questions = questions, ids = joined("ids", "_"), labels = joined("labels", " \u00d7 "),
    weights = diag(prod(size))
  )
  c(one, list(cells))
}

# Weights of the choices: their values on a scale, and 1 for each answer if some choices are no answers.
.scales_of <- function(question) {
  answers <- vapply(question$choices, function(choice) is.null(choice$role), NA)
  valued <- vapply(question$choices, function(choice) !is.null(choice$score), NA)
  value <- function(choice) if (is.null(choice$score)) 0 else as.numeric(choice$score)
  c(
    if (all(valued[answers])) list(score = answers * vapply(question$choices, value, 0)),
    if (!all(answers)) list(answered = 1 * answers)
  )
}

# Names of letters, digits and underscores that CSV readers, R, SPSS and Stata accept, each given once.
.column_names <- function(ids) {
  # SPSS does not tell small letters from capitals.
  taken <- "count"
  vapply(ids, function(id) {
    text <- gsub("[^A-Za-z0-9_]", "_", id, perl = TRUE)
    if (!grepl("^[A-Za-z]", text, perl = TRUE) || grepl(RESERVED, tolower(text), perl = TRUE)) text <- paste0("q_", text)
    name <- substr(text, 1, LONGEST_NAME)
    number <- 1L
    while (tolower(name) %in% taken) {
      number <- number + 1L
      ending <- paste0("_", number)
      name <- paste0(substr(text, 1, LONGEST_NAME - nchar(ending)), ending)
    }
    taken <<- c(taken, tolower(name))
    name
  }, "", USE.NAMES = FALSE)
}
