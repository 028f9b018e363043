# SPDX-License-Identifier: GPL-3.0-or-later
# Sorts and groups a table with data.table: Rscript table.R ROWS REPETITIONS
library(data.table)
arguments <- as.integer(commandArgs(TRUE))
rows <- arguments[1]
set.seed(1)
data <- data.table(kind = sample(1000L, rows, TRUE), id = sample(rows, rows), x = runif(rows),
                   group = sample(c("a", "b", "c"), rows, TRUE))
total <- 0
for (i in seq_len(arguments[2])) {
    sorted <- copy(data)
    setorder(sorted, kind, id)
    means <- data[, .(mean = mean(x), .N), by = .(kind, group)]
    total <- total + sum(means$mean) + sorted$x[10] + data[order(x)]$kind[5] +
        nrow(data[kind > 500L & x < .5])
}
cat(sprintf("checksum %.10g\n", total))
