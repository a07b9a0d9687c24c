# Every target works on the root module and on the nested ones (bench), which ./... does not reach.

MODULES     := $(sort $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path '*/.*/*'))))
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCHTIME   ?= 1s
COUNT       ?= 6
REF         ?= HEAD~1
BENCH       ?= .
FUZZTIME    ?= 20s
SEED        ?= 0

# A workspace file in or above this directory would undo the versions that each module pins.
export GOWORK := off

# each runs a command in every module and stops at the first that fails.
each = @for m in $(MODULES); do echo "$$m: $(1)"; (cd $$m && $(1)) || exit 1; done

.PHONY: help test race redis lint vet staticcheck fuzz bench bench-compare chaos quickstart tidy ci
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## run all tests; those that need redis-server are skipped if it is not installed
	$(call each,go test ./...)

race: ## run all tests under the race detector, in random order
	$(call each,go test -race -shuffle=on ./...)

redis: ## run all tests, and fail if a back end is missing
	$(call each,DISPATCH_TEST_REQUIRE=all go test ./...)

lint: vet staticcheck ## check format, vet, staticcheck, and the rules of internal/lint
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go test ./internal/lint

vet: ## run go vet
	$(call each,go vet ./...)

staticcheck: ## run staticcheck
	$(call each,$(STATICCHECK) ./...)

fuzz: ## run each fuzz target for FUZZTIME
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done; \
	done

bench: ## run our own benchmarks for BENCHTIME each, then the figures of bench
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem ./...
	@if [ -d bench ]; then cd bench && go run .; fi

bench-compare: ## compare benchmarks beside the code with those of REF: make bench-compare REF=HEAD~5 BENCH=Scripts
	@set -e; old=$$(mktemp -d); trap 'git worktree remove --force "$$old/tree"; rm -rf "$$old"' EXIT; \
	git worktree add --quiet --detach "$$old/tree" $(REF); \
	for i in $$(seq $(COUNT)); do \
	  (cd "$$old/tree" && go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...) >> "$$old/before" || true; \
	  go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./... >> "$$old/after"; \
	done; $(BENCHSTAT) "$$old/before" "$$old/after"

chaos: ## break everything, shortly; one seed: make chaos SEED=7
	cd bench && go run ./chaos -all -quick -seed $(SEED)

quickstart: ## run the first example
	go run ./examples/quickstart

tidy: ## run go mod tidy
	$(call each,go mod tidy)

ci: ## do all that CI does
	.ci/run
