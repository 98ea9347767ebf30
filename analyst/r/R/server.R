# SPDX-License-Identifier: Apache-2.0
# Requests to one server with one API key, and its errors as R conditions.

MAX_ANSWER_BYTES <- 64 * 2^20

# The key is sent only over https, or to this machine.
frankly <- function(url, key) {
  .is_text(url, "url")
  .is_text(key, "key")
  loopback <- "^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?(/|$)"
  if (!grepl("^https://[^/]", url) && !grepl(loopback, url)) {
    .stop_with(
      "the address must begin with https:// (http:// only on this machine), to protect your key",
      code = "network", kind = "frankly_unreachable", field = "url"
    )
  }
  structure(list(url = sub("/+$", "", url), key = function() key), class = "frankly_server")
}

print.frankly_server <- function(x, ...) {
  cat("Frankly server", x$url, "\n")
  invisible(x)
}

surveys <- function(server) {
  listed <- .ask(server, "GET", "/v1/surveys")$surveys
  # All columns are plain: texts by language are replaced by the text of the first language.
  flat <- lapply(listed, function(one) lapply(one, .flat))
  .rows(flat)
}

# Return the id of a survey from its id, name or title.
.survey_id <- function(server, survey) {
  .is_text(survey, "survey")
  if (grepl("^[0-9a-f]{32}$", survey)) return(survey)
  listed <- .ask(server, "GET", "/v1/surveys")$surveys
  found <- Filter(function(one) survey == one$name || survey %in% unlist(one$title), listed)
  if (length(found) != 1L) {
    names <- paste(vapply(listed, `[[`, "", "name"), collapse = ", ")
    several <- if (length(found)) "several surveys have this title" else "there is no such survey"
    .invalid(sprintf("%s; the server's are %s", several, names), "survey", code = "survey_unknown")
  }
  found[[1]]$survey
}

plan <- function(server, solve_for, ...) {
  body <- .ask(server, "POST", "/v1/plan", body = list(solve_for = solve_for, ...))
  structure(body, class = "frankly_plan")
}

print.frankly_plan <- function(x, ...) {
  level <- if (is.null(x$epsilon)) "" else paste0(" with epsilon ", x$epsilon)
  if (!is.null(x$factor)) level <- paste0(" with levels times ", x$factor)
  invited <- if (identical(x$invited, x$n)) "" else sprintf(" (%s invited)", x$invited)
  cat(sprintf(
    "%s reports%s%s: +/- %.2f%% at %s by %s\n",
    format(x$n, big.mark = ""), invited, level, 100 * x$margin, format(x$level), x$method
  ))
  invisible(x)
}

# Return the JSON of a response; stop with a condition that has code, field, detail and status.
.ask <- function(server, method, path, query = list(), body = NULL) {
  if (!inherits(server, "frankly_server")) {
    .invalid("the first argument must be a server: frankly(url, key)", "server")
  }
  request <- httr2::request(paste0(server$url, path))
  request <- httr2::req_method(request, method)
  request <- httr2::req_headers(request, Authorization = paste("Bearer", server$key()))
  if (length(query)) request <- do.call(httr2::req_url_query, c(list(request), query))
  if (!is.null(body)) {
    text <- jsonlite::toJSON(.json(body), auto_unbox = TRUE, digits = NA, null = "null")
    request <- httr2::req_body_raw(request, charToRaw(enc2utf8(text)), "application/json")
  }
  request <- httr2::req_timeout(request, 60)
  # Following a redirect would send the key to another address.
  request <- httr2::req_options(request, followlocation = FALSE, maxfilesize = MAX_ANSWER_BYTES)
  request <- httr2::req_error(request, is_error = function(resp) FALSE)
  # The text of a transport error may contain the address with the query.
  answer <- tryCatch(
    httr2::req_perform(request),
    error = function(e) .unreachable(sprintf("no answer from %s", server$url))
  )
  .read(answer)
}

.read <- function(answer) {
  status <- httr2::resp_status(answer)
  kind <- httr2::resp_content_type(answer)
  data <- if (length(answer$body)) httr2::resp_body_raw(answer) else raw()
  if (length(data) > MAX_ANSWER_BYTES) {
    .unreachable("the response is larger than any response of a Frankly server")
  }
  # Checked before parsing: a proxy's error page is not a response of the server.
  if (!kind %in% c("application/json", "application/problem+json")) {
    .unreachable(sprintf(
      "the server answered with status %d and no JSON; check the address", status
    ))
  }
  body <- tryCatch(
    jsonlite::fromJSON(rawToChar(data), simplifyVector = FALSE),
    error = function(e) .unreachable("the response is not valid JSON")
  )
  if (status == 200L) return(body)
  if (!is.list(body) || !is.character(body$code)) {
    .unreachable(sprintf("the server answered with status %d", status))
  }
  .stop_with(
    if (is.null(body$detail)) body$title else body$detail,
    code = body$code, kind = "frankly_refused", field = body$field, status = status
  )
}

# Classes: frankly_<code>, then the kind, then frankly_error, as tryCatch() looks for them.
.stop_with <- function(detail, code, kind, field = NULL, status = NULL) {
  text <- if (is.null(field)) detail else paste0(field, ": ", detail)
  stop(structure(
    list(
      message = text, call = NULL, detail = detail, code = code, field = field, status = status
    ),
    class = c(paste0("frankly_", code), kind, "frankly_error", "error", "condition")
  ))
}

.unreachable <- function(detail) .stop_with(detail, code = "network", kind = "frankly_unreachable")

.invalid <- function(detail, field, code = "targets_invalid") {
  .stop_with(detail, code = code, kind = "frankly_invalid_request", field = field)
}

.is_text <- function(value, field) {
  if (!is.character(value) || length(value) != 1L || is.na(value) || !nzchar(value)) {
    .invalid("must be one text", field, code = "field_type")
  }
}

# Named vectors and lists become JSON objects, other vectors of length > 1 arrays.
.json <- function(value) {
  if (is.null(value) || inherits(value, "AsIs")) return(value)
  if (is.matrix(value)) return(unname(apply(value, 1, as.list, simplify = FALSE)))
  if (inherits(value, "Date")) value <- format(value)
  if (is.list(value)) return(lapply(value, .json))
  if (!is.null(names(value))) return(as.list(value))
  if (length(value) == 1L) return(value)
  as.list(value)
}

# Return the text in a language, or the first text if the language is missing or not specified.
.localised <- function(texts, language = NULL, languages = names(texts)) {
  if (!is.list(texts)) return(as.character(texts))
  for (one in c(language, unlist(languages), names(texts))) {
    if (!is.null(texts[[one]])) return(texts[[one]])
  }
  ""
}

.flat <- function(value) {
  if (is.null(value)) return(NA)
  if (is.list(value) && !is.null(names(value))) return(.localised(value))
  if (length(value) != 1L) return(paste(unlist(value), collapse = ","))
  value[[1]]
}

# Return a data frame of lists with the same names; a missing value is NA.
.rows <- function(rows) {
  names <- unique(unlist(lapply(rows, names)))
  columns <- lapply(names, function(name) {
    unlist(lapply(rows, function(row) if (is.null(row[[name]])) NA else row[[name]]))
  })
  data.frame(stats::setNames(columns, names), check.names = FALSE, stringsAsFactors = FALSE)
}
