# Every target works from a fresh clone with Go alone. `make test` on a machine of its own, as in CI, runs everything: see .ci/run.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
TIMEOUT  ?= 20m
FUZZTIME ?= 5s
BENCH    ?= .

# In CI (CI set, and not to 0 or false) a skipped test is a failure, and `make test` does this as well. `make test CI=1 ALSO=` does not.
IN_CI := $(filter-out 0 false no,$(CI))
ALSO  ?= check fuzz

# The race detector needs a C compiler. Nothing else does: the command is built without.
RACE := $(if $(shell command -v $$($(GO) env CC) 2>/dev/null),-race)

.NOTPARALLEL:
.PHONY: help build check test prepare fuzz bench cover clean

help: ## say what there is to make
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

# One way to build for all three, so that the dependencies are compiled once for them, and once more for the tests.
build check fuzz: export CGO_ENABLED = 0
build check fuzz: export GOFLAGS += -trimpath

build: ## build bin/raddle
	$(GO) build -buildvcs=auto -ldflags '-s -w' -o bin/raddle ./cmd/raddle

check: build ## build, vet, gofmt and staticcheck
	$(GO) vet ./...
	$(GO) -C tools vet ./...
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) -C tools test ./...

test: prepare $(if $(IN_CI),$(ALSO)) ## run all tests, with the race detector where it can; in CI also check and fuzz
	@[ -n "$(RACE)" ] || echo "no C compiler ($$($(GO) env CC)): testing without the race detector"
ifeq ($(IN_CI),)
	$(GO) test $(RACE) -timeout $(TIMEOUT) ./...
else
	$(GO) -C tools build -o ../out/testreport ./testreport
	$(GO) test $(RACE) -timeout $(TIMEOUT) -json ./... | out/testreport
endif

prepare: ## install what tests of scripts need, as far as it can be done here
	@CI=$(IN_CI) .ci/prepare

fuzz: ## run every fuzz target for FUZZTIME
	@GO=$(GO) .ci/fuzz $(FUZZTIME)

bench: ## run the benchmarks that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

cover: ## write out/cover.html and print the total
	@mkdir -p out
	$(GO) test -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=out/cover.txt ./...
	$(GO) tool cover -html=out/cover.txt -o out/cover.html
	$(GO) tool cover -func=out/cover.txt | tail -n 1

clean: ## delete what was built
	rm -rf bin out
