# SPDX-License-Identifier: Apache-2.0
# Weighted means of decoded scores by R's survey: Rscript survey.R reports.csv out.csv
# reports.csv: region, sex, age, base, d1, d2, d3 (decoded scores), count. out.csv: name, value.
suppressPackageStartupMessages(library(survey))
files <- commandArgs(trailingOnly = TRUE)
cells <- read.csv(files[1], colClasses = c(region = "character", sex = "character", age = "character"))
rows <- cells[rep(seq_len(nrow(cells)), cells$count), ]
rows$one <- 1
rows$stratum <- paste(rows$region, rows$sex, rows$age)
scores <- ~ d1 + d2 + d3
simple <- svydesign(ids = ~1, weights = ~one, data = rows)
based <- svydesign(ids = ~1, weights = ~base, data = rows)
strata <- svydesign(ids = ~1, strata = ~stratum, weights = ~base, data = rows)
region <- data.frame(region = c("n", "m", "s"), Freq = c(5000, 3000, 4000))
sex <- data.frame(sex = c("f", "w"), Freq = c(6500, 5500))
cell <- data.frame(
  region = rep(c("n", "m", "s"), 2), sex = rep(c("f", "w"), each = 3),
  Freq = c(2600, 1700, 2200, 2400, 1300, 1800)
)
totals <- c("(Intercept)" = 12000, regionn = 5000, regions = 4000, sexw = 5500)
tight <- list(maxit = 5000, epsilon = 1e-12, verbose = FALSE)
designs <- list(
  simple = simple, based = based, strata = strata,
  post = postStratify(simple, ~ region + sex, cell),
  post_based = postStratify(based, ~ region + sex, cell),
  post_strata = postStratify(strata, ~ region + sex, cell),
  rake = rake(simple, list(~region, ~sex), list(region, sex), control = tight),
  linear_based = calibrate(based, ~ region + sex, totals, calfun = "linear"),
  raking_based = calibrate(based, ~ region + sex, totals, calfun = "raking", epsilon = 1e-12, maxit = 500)
)
out <- data.frame(name = character(), value = numeric())
add <- function(name, values) out <<- rbind(out, data.frame(name = name, value = values))
for (name in names(designs)) {
  mean <- svymean(scores, designs[[name]])
  add(paste(name, "mean", 1:3), as.numeric(coef(mean)))
  V <- vcov(mean)
  add(paste(name, "covariance", c(11, 22, 33, 12, 13, 23)), c(diag(V), V[1, 2], V[1, 3], V[2, 3]))
  model <- svyglm(d1 ~ region + sex, designs[[name]])
  add(paste(name, "coefficient", 1:4), as.numeric(coef(model)))
  add(paste(name, "error", 1:4), as.numeric(sqrt(diag(vcov(model)))))
}
out$value <- formatC(out$value, digits = 14, format = "g")
write.csv(out, files[2], row.names = FALSE, quote = FALSE)
