# SPDX-License-Identifier: Apache-2.0
# Score tables of the package, and what `survey` makes of them and of the CSV files of the Python client.
# Rscript score_table.R tables.json result.json: tables.json lists questions, by, strata and the CSV file of each; or
# questions and a file with the server's response, whose table only is made.

suppressPackageStartupMessages({
  library(frankly)
  library(survey)
})

arguments <- commandArgs(TRUE)

means <- function(reports, scores, strata) {
  strata <- if (length(strata)) stats::reformulate(strata)
  design <- svydesign(ids = ~1, weights = ~1, strata = strata, data = reports)
  mean <- svymean(stats::reformulate(scores), design)
  list(mean = as.list(coef(mean)), se = as.list(SE(mean)))
}

asked <- jsonlite::fromJSON(arguments[1], simplifyVector = FALSE)
results <- lapply(asked, function(one) {
  questions <- unlist(one$questions)
  if (!is.null(one$body)) {
    x <- frankly:::.counts(jsonlite::fromJSON(one$body, simplifyVector = FALSE))
    return(list(columns = as.list(decoded(x, questions))))
  }
  server <- frankly(Sys.getenv("FRANKLY_URL"), Sys.getenv("FRANKLY_API_KEY"))
  x <- counts(
    server, Sys.getenv("SURVEY"), by = unlist(one$by), questions = if (length(questions) > 1) questions
  )
  table <- decoded(x, questions)
  labels <- attr(table, "labels")
  after <- match("symbol", names(table))
  scores <- names(table)[(after + 1):(ncol(table) - 1)]
  ratio <- NULL
  if (!is.null(one$ratio)) {
    design <- svydesign(
      ids = ~1, weights = ~1, strata = ~version, data = decoded(x, questions, expand = TRUE)
    )
    r <- svyratio(stats::reformulate(one$ratio[[1]]), stats::reformulate(one$ratio[[2]]), design)
    ratio <- list(unname(coef(r)), unname(drop(SE(r))))
  }
  list(
    columns = as.list(table), complete = as.list(decoded(x, questions, complete = TRUE)),
    labels = as.list(labels), ratio = ratio,
    decoded = means(decoded(x, questions, expand = TRUE), scores, unlist(one$strata)),
    csv = means(utils::read.csv(one$csv), scores, unlist(one$strata))
  )
})
writeLines(jsonlite::toJSON(results, digits = NA, na = "null", auto_unbox = TRUE), arguments[2])
