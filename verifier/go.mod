module frankly/verifier

go 1.19
