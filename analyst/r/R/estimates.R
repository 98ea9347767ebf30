# SPDX-License-Identifier: Apache-2.0
# Estimates of a survey with their margins: an object with the methods of an R model.

# The arguments after `survey` are the fields of the server's estimates request.
estimates <- function(server, survey, targets = "wanted", by = NULL, method = NULL, level = 0.95,
                      census = FALSE, population = NULL, simultaneous = FALSE, percent = NULL,
                      quantiles = NULL, weights = "respondents", since = NULL, until = NULL,
                      compare = NULL, equivalence = NULL, group_sizes = NULL, random = NULL,
                      completion = FALSE, denial = NULL, language = NULL) {
  survey <- .survey_id(server, survey)
  request <- list(
    targets = targets, by = by, method = method, level = level, census = census,
    population = population, simultaneous = simultaneous, percent = percent,
    quantiles = quantiles, weights = weights, since = since, until = until,
    compare = if (is.list(compare)) unlist(compare) else compare,
    equivalence = equivalence,
    group_sizes = if (is.list(group_sizes)) unlist(group_sizes) else group_sizes,
    random = random, completion = completion, denial = denial
  )
  body <- .ask(server, "GET", .path(survey, "estimates"), query = .query(request))
  .estimates(body, server, survey, request, language)
}

.path <- function(survey, last) {
  paste0("/v1/surveys/", utils::URLencode(survey, reserved = TRUE), "/", last)
}

.estimates <- function(body, server, survey, request, language) {
  rows <- unlist(lapply(body$questions, `[[`, "rows"), recursive = FALSE)
  languages <- body$languages
  flat <- lapply(rows, function(row) {
    row$label <- .localised(row$label, language, languages)
    lapply(row, .flat)
  })
  frame <- .rows(flat)
  structure(
    list(
      title = .localised(body$title, language, languages), n = body$n, rows = frame,
      body = body, server = server, survey = survey, request = request, language = language
    ),
    class = "frankly_estimates"
  )
}

# Fields that differ from their defaults, as the texts of a query.
.query <- function(request) {
  defaults <- formals(estimates)
  given <- Filter(function(name) {
    value <- request[[name]]
    !is.null(value) && !identical(value, eval(defaults[[name]]))
  }, names(request))
  texts <- lapply(stats::setNames(given, given), function(name) .as_text(name, request[[name]]))
  texts
}

.as_text <- function(name, value) {
  if (name == "targets") return(.targets(value))
  if (name %in% c("compare", "group_sizes") && !is.null(names(value))) return(.targets(as.list(value)))
  if (name == "random" && is.list(value)) return(.targets(value))
  if (name == "quantiles") return(paste(format(value, trim = TRUE, drop0trailing = TRUE), collapse = ","))
  if (length(value) != 1L || is.na(value)) .invalid("must be one value", name, code = "field_type")
  if (is.logical(value)) return(if (value) "true" else "false")
  if (name == "level") return(sub("0+$", "", formatC(value, format = "f", digits = 12)))
  if (is.numeric(value)) return(format(value, scientific = FALSE, trim = TRUE, digits = 15))
  if (inherits(value, "Date")) return(format(value))
  as.character(value)
}

# "wanted", "shares", "scales" and JSON stay unchanged; question ids become a list, combinations an object.
.targets <- function(value) {
  if (is.character(value) && is.null(names(value)) && length(value) == 1L &&
      (value %in% c("wanted", "shares", "scales") || grepl("^\\s*[[{]", value))) {
    return(value)
  }
  if (is.character(value)) value <- as.list(value)
  as.character(jsonlite::toJSON(.json(value), auto_unbox = TRUE, digits = NA))
}

crosstab <- function(estimates, ..., percent = NULL) {
  questions <- c(...)
  .named_once(questions, "questions")
  .again(estimates, as.list(questions), percent)
}

scales <- function(estimates, quantiles = NULL) {
  .is_estimates(estimates)
  estimates$request["quantiles"] <- list(quantiles)
  .again(estimates, "scales")
}

lincom <- function(estimates, question, weights, by = "", label = NULL) {
  .weighted_choices(weights, "weights")
  .combined(estimates, question, as.list(weights), by, label %||% .formula(weights))
}

ratio <- function(estimates, question, of, over, by = "", label = NULL) {
  .weighted_choices(of, "of")
  answered <- identical(over, "answered")
  if (!answered) .weighted_choices(over, "over")
  target <- list(of = as.list(of), over = if (answered) over else as.list(over))
  text <- sprintf("(%s) / (%s)", .formula(of), if (answered) over else .formula(over))
  .combined(estimates, question, target, by, label %||% text)
}

`%||%` <- function(a, b) if (is.null(a)) b else a

# Request other targets, with the other fields of the request unchanged.
.again <- function(x, targets, percent = NULL) {
  .is_estimates(x)
  if (is.null(x$server)) {
    .invalid("these estimates did not come from a server", "targets", code = "unsupported")
  }
  request <- x$request
  request$targets <- targets
  request["percent"] <- list(percent)
  request["compare"] <- list(NULL)
  request["equivalence"] <- list(NULL)
  request$completion <- FALSE
  if (!identical(targets, "scales")) request["quantiles"] <- list(NULL)
  body <- .ask(x$server, "GET", .path(x$survey, "estimates"), query = .query(request))
  .estimates(body, x$server, x$survey, request, x$language)
}

.combined <- function(x, question, combination, by, label) {
  .is_text(question, "question")
  names <- gsub(" \u00d7 ", ",", names(combination))
  if (!"of" %in% names) names(combination) <- names
  target <- stats::setNames(
    list(list(combination = combination)), gsub(" \u00d7 ", ",", question)
  )
  again <- .again(x, target)
  kept <- again$rows$by == by
  if (!any(kept)) .invalid("there are no estimates of this group", "by")
  again$rows <- again$rows[kept, , drop = FALSE]
  again$rows$choice <- again$rows$label <- label
  again
}

.weighted_choices <- function(weights, field) {
  if (!is.numeric(weights) || is.null(names(weights)) || anyNA(weights)) {
    .invalid("must be numbers named by choices: c(weekly = 1, daily = 1)", field)
  }
  .named_once(names(weights), field)
}

.named_once <- function(names, field) {
  same <- gsub(" \u00d7 ", ",", names)
  if (!is.character(names) || !length(names)) .invalid("must be names", field)
  if (anyDuplicated(same)) {
    .invalid(paste(names[duplicated(same)][1], "is named twice: name each once"), field)
  }
}

.formula <- function(weights) {
  size <- ifelse(abs(weights) == 1, "", paste0(format(abs(weights), trim = TRUE), " * "))
  text <- paste(ifelse(weights < 0, "-", "+"), paste0(size, names(weights)), collapse = " ")
  sub("^\\+ ", "", text)
}

.is_estimates <- function(x) {
  if (!inherits(x, "frankly_estimates")) {
    .invalid("must be estimates: estimates(server, survey)", "estimates", code = "field_type")
  }
}

# Names of the rows: "question:choice", with the group in brackets.
.terms <- function(rows) {
  group <- ifelse(nzchar(rows$by), paste0(" [", rows$by, "]"), "")
  paste0(rows$question, ":", rows$choice, group)
}
