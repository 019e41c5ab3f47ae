# make help lists the targets. The README says what they need; .ci/run runs them as CI does.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
TIMEOUT  ?= 20m
FUZZTIME ?= 5s
BENCH    ?= .
ROUNDS   ?= 10
MOST     ?= 700
SAMPLE   ?= 100
SEED     ?= 1
MUTATED  ?= ./tool/permission ./graph ./store/sqlite

# goreleaser is not one of our modules: it takes longer to compile than raddle, and only a release needs it.
GORELEASER_VERSION := github.com/goreleaser/goreleaser/v2@v2.14.3
GORELEASER_SUM     := h1:vWFc2clxPb1DUkafYVdr93Vx27Mb5VPDRghY8AfWZFo=
GORELEASER         ?= $(GO) run $(GORELEASER_VERSION)

SPACE := $(subst ,, )

# In CI (CI set, and not to 0 or false) a skipped test is a failure, and no result comes from an earlier run.
IN_CI := $(filter-out 0 false no,$(CI))

# The race detector needs a C compiler. Nothing else does: the command is built without. SQLite is C translated to Go, and its memory is its own:
# the detector watches none of that memory, and only makes it three to four times slower. It sees the locks that SQLite takes all the same.
RACE := $(if $(shell command -v $$($(GO) env CC) 2>/dev/null),-race -gcflags=modernc.org/...=-race=false)

# The packages that are tested without it: neither their code nor their tests have to do with several goroutines. TestRaceList of
# internal/repository compares the list with the sources.
UNRACED := ./agent/shape ./cmd/raddle ./docs/guide ./draw ./draw/internal/layered ./examples/go ./flow/check ./flow/narrate ./flow/spec ./graph/history \
	./graph/internal/migration ./graph/internal/record ./internal/base/browser ./internal/base/environ ./internal/base/jsonvalue ./internal/base/release ./internal/base/schema \
	./internal/base/stats ./internal/base/strictyaml ./internal/base/term/editor ./internal/base/term/markdown ./internal/base/toolschema \
	./internal/base/wording ./internal/base/yamlformat ./internal/process/agentfile ./internal/process/fetchagent ./internal/process/mcpsetup ./internal/process/owncommand \
	./internal/proving/dataset ./internal/proving/junit ./internal/proving/score ./internal/proving/testcase ./internal/report/crowd ./internal/report/overview \
	./internal/report/question ./internal/report/runlist ./internal/report/story ./internal/report/updates ./internal/report/versus ./internal/report/waterfall ./internal/repository ./internal/storage/attach \
	./internal/storage/config ./internal/storage/entries ./internal/storage/mail ./internal/storage/runfile ./internal/storage/stores ./internal/storage/storetool \
	./internal/terminal/console ./internal/terminal/ending ./internal/terminal/frontdoor ./internal/terminal/helptext ./internal/terminal/installer ./internal/terminal/language ./internal/terminal/manual ./internal/terminal/moving \
	./internal/terminal/rolelist ./internal/terminal/runview ./internal/terminal/shareview ./internal/terminal/shellhelp ./internal/terminal/tryout ./internal/testkit/termtest \
	./internal/testkit/testneed ./llm ./llm/anthropic ./llm/gemini ./rag/keyword ./rag/split ./tool ./tool/declare

# A process with the race detector otherwise waits a second before it ends, and tests start thousands.
export GORACE = atexit_sleep_ms=0

# What .ci/prepare installs in internal/testkit/clients/ is not ours.
NOT_INSTALLED := -not -path './internal/testkit/clients/*/node_modules/*' -not -path './internal/testkit/clients/*/.venv/*'

# The packages of bench/ that need no other engine.
BENCHED := ./bench ./floor ./praddle ./work ./cmd/table ./cmd/coldtime ./cmd/cold-floor ./cmd/cold-raddle

.NOTPARALLEL:
.PHONY: help build check apidiff vulns test test-all check-sdks prepare testreport fuzz chaos soak mutants bench bench-peers bench-table cover numbers release release-test platforms clean

help: ## say what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# One way to build for all of them, so that the dependencies are compiled once for them, and once more for the tests.
build check apidiff fuzz platforms: export CGO_ENABLED = 0
build check apidiff fuzz platforms: export GOFLAGS += -trimpath

build: ## build bin/raddle
	$(GO) build -buildvcs=auto -ldflags '-s -w' -o bin/raddle ./cmd/raddle

check: build ## build, vet, gofmt and staticcheck
	$(GO) vet ./...
	$(GO) -C build vet ./...
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $$(find . -name '*.go' $(NOT_INSTALLED))); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	$(GO) tool -modfile=build/go.mod staticcheck ./...
	$(GO) -C build test ./...
	$(GO) -C bench vet $(BENCHED)
	$(GO) -C bench test $(BENCHED)
	$(GO) tool -modfile=build/go.mod actionlint -shellcheck= -pyflakes=

apidiff: ## compare the packages that are API with those of the last version
	@GO=$(GO) .ci/apidiff

vulns: ## look for known vulnerabilities in what raddle uses, where the database can be reached
	@GO=$(GO) .ci/vulns

# How every test runs. go vet is a part of make check. testreport measures what each package takes. None may take more than MOST seconds of
# the processors, several times what the slowest takes: machines differ, and a limit near the truth would fail on some.
GO_TEST = test -vet=off $(if $(IN_CI),-count=1) -timeout $(TIMEOUT) -exec '"$(CURDIR)/out/testreport" -run' -json
REPORT   = out/testreport -most $(MOST)

# run_tests NAME,FLAGS,PACKAGES,REPORT: tests PACKAGES with FLAGS, those of UNRACED without the race detector and as make build compiles them.
# It counts the tests in out/results/NAME and writes the seconds of each package to out/results/NAME.seconds. REPORT are flags of testreport.
define run_tests
@mkdir -p out/results
@all="$(3)"; raced=(); unraced=(); for package in $$all; do case " $(UNRACED) " in *" $$package "*) unraced+=("$$package");; *) raced+=("$$package");; esac; done; \
failed=; { \
[ $${#unraced[@]} = 0 ] || CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -trimpath" $(GO) $(GO_TEST) $(2) "$${unraced[@]}" || failed=1; \
[ $${#raced[@]} = 0 ] || $(GO) $(GO_TEST) $(RACE) $(2) "$${raced[@]}" || failed=1; \
[ -z "$$failed" ]; } | $(REPORT) -name $(1) -o out/results/$(1) $(4)
endef

# run_temporal NAME,FLAGS: the same for the module temporal/, without the race detector: to compile its libraries again takes minutes.
define run_temporal
@mkdir -p out/results
$(GO) -C temporal $(GO_TEST) $(2) ./... | $(REPORT) -name $(1) -o out/results/$(1) $(if $(IN_CI),,-skips)
endef

# packages_with PREFIX: the packages that have tests whose names begin with PREFIX.
packages_with = $$(grep -rlE '^func $(1)[A-Z]' --include='*_test.go' --exclude-dir=node_modules --exclude-dir=.venv --exclude-dir=temporal . | sed -E 's|/[^/]*$$||' | sort -u)

# TESTED are the packages that have tests.
TESTED = $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}.{{slice .ImportPath (len .Module.Path)}}{{end}}' ./...)

test: testreport ## run the tests that need no more than the programs of the README
	@[ -n "$(RACE)" ] || echo "no C compiler ($$($(GO) env CC)): testing without the race detector"
	$(call run_tests,test,-skip '^Test(Extra|Optional)[A-Z]',$(TESTED),$(if $(IN_CI),,-skips))
	$(GO) -C temporal vet ./...
	$(call run_temporal,temporal,-skip '^Test(Extra|Optional)[A-Z]')

test-all: testreport prepare ## install what the other tests need, and run these
	$(call run_tests,extra,-run '^TestExtra[A-Z]',$(call packages_with,TestExtra),$(if $(IN_CI),,-skips))
	$(call run_tests,optional,-run '^TestOptional[A-Z]',$(call packages_with,TestOptional),-skips)
	$(call run_temporal,temporal-extra,-run '^TestExtra[A-Z]')
	$(GO) -C internal/process/telemetry/sdkcheck test -count=1 ./...

testreport:
	@$(GO) -C build build -o ../out/testreport ./testreport

prepare: ## install what make test-all needs, as far as it can be done here
	@CI=$(IN_CI) .ci/prepare

check-sdks: ## compare the wires and the telemetry with the libraries of their owners (compiles them; not part of CI)
	$(GO) -C llm/internal/sdkcheck vet ./...
	$(GO) -C llm/internal/sdkcheck test -count=1 ./...
	$(GO) -C internal/process/telemetry/sdkcheck vet ./...
	$(GO) -C internal/process/telemetry/sdkcheck test -count=1 ./...

fuzz: ## run every fuzz target for FUZZTIME
	@GO=$(GO) .ci/fuzz $(FUZZTIME)

chaos: ## run the tests that kill, race and take over, ROUNDS times
	$(GO) test -count=$(ROUNDS) -timeout 3h -run 'Kill|Crash|Rac(e|ing)|Lease|Takeover|Hang|Resum' ./graph/... ./store/... ./team ./flow ./server/... ./tool/... ./internal/...
	$(GO) -C temporal test -count=$(ROUNDS) -timeout 3h -run 'Conformance|Kill|Frozen|Remote|Cancel' ./...

# SOAKED are the tests of properties that make all their rounds only where RADDLE_SOAK is set: see testneed.Soaks.
SOAKED := TestADamagedFile TestBytesGrowInProportion TestExploreAcceptsWhatIsRight TestExploreRandomGraphs TestKilledConversationsOfAllVendors \
	TestManyRunsAtOnceKeepApart TestRandomEdits TestReviewStoppedAtEveryRecord TestSessionOfManyTurns TestTakeoverAtRandomMoments TestTravelAtRandom

soak: ## run the tests of properties in full, 1,000 scenarios of permissions, a live team in the Studio for 10 minutes, and every fuzz target for a minute
	RADDLE_SOAK=1 $(GO) test -count=1 -timeout 3h -run '^($(subst $(SPACE),|,$(strip $(SOAKED))))$$' ./graph/... ./store/sqlite ./internal/process/app ./internal/terminal/cli ./internal/terminal/lspview
	RADDLE_CRASHES=40 $(GO) test -count=1 -timeout 3h -run '^TestCrashesOf' -v ./internal/proving/testrun
	RADDLE_SOAK=1000 $(GO) test -count=1 -timeout 3h -run TestNothingDeniedIsTouched -v ./tool/builtin
	RADDLE_SOAK=10 $(GO) test -count=1 -timeout 1h -run '^TestExtraTeamSoak$$' -v ./server/studio
	$(MAKE) fuzz FUZZTIME=1m

mutants: ## change SAMPLE places of each package of MUTATED, and show with which changes its own tests still pass
	$(GO) -C build build -o ../out/mutants ./mutants
	out/mutants -n $(SAMPLE) -seed $(SEED) $(MUTATED)

numbers: ## show how well ideas are kept apart, as numbers
	$(GO) test -count=1 -run '^TestNumbers$$' -v ./internal/repository

bench: ## run the benchmarks that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-peers: ## build the other engines, check them, and time all into bench/out
	$(GO) -C bench test -tags peers ./bench
	PEERS=1 bench/run.sh

bench-table: ## make the table and the picture of docs/performance.md from bench/results
	cd bench && $(GO) run ./cmd/table -engines results/raddle.txt results/peers.txt results/others.txt
	cd bench && $(GO) run ./cmd/table -picture ../docs/performance.svg results/raddle.txt results/peers.txt results/others.txt

cover: ## write out/cover.html and print the total
	@mkdir -p out
	$(GO) test -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=out/cover.txt ./...
	$(GO) tool cover -html=out/cover.txt -o out/cover.html
	$(GO) tool cover -func=out/cover.txt | tail -n 1

# A release is made of a tag; without one at HEAD, everything is made as it would be, under a version of its own.
RELEASE_FLAGS = --clean $(if $(PUBLISH),,--skip=publish$(if $(RADDLE_SIGNING_KEY),,$(COMMA)sign)) $(if $(shell git describe --exact-match --tags HEAD 2>/dev/null),,--snapshot)
COMMA := ,

release: ## build the archives, packages and lists of a release in out/release; PUBLISH=1 uploads them as a draft
	@$(GO) mod download -json $(GORELEASER_VERSION) | grep -qF '"Sum": "$(GORELEASER_SUM)"' || { echo "$(GORELEASER_VERSION) is not what $(GORELEASER_SUM) says: do not use it"; exit 1; }
	$(GORELEASER) release $(RELEASE_FLAGS)

# The release of one platform, with a key of its own, and with a server of this machine as the address of releases.
RELEASE_PORT ?= 18917

release-test: ## build the release for Linux on amd64 with a key of its own, and try each way to install it in empty roots
	@mkdir -p out && rm -rf out/site out/key.pem
	sed -e 's/goos: \[.*/goos: [linux]/' -e 's/goarch: \[.*/goarch: [amd64]/' .goreleaser.yaml >out/goreleaser.yaml
	$(GO) -C build build -o ../out/releasetool ./release
	out/releasetool key out/key.pem >out/key.txt
	export RADDLE_SIGNING_KEY=out/key.pem RADDLE_RELEASE_KEY="$$(cat out/key.txt)" RADDLE_RELEASES=http://127.0.0.1:$(RELEASE_PORT)/releases; \
	$(GORELEASER) release -f out/goreleaser.yaml --clean --skip=publish,scoop --snapshot; \
	GO=$(GO) .ci/try-release out/site $(RELEASE_PORT)

platforms: ## compile and vet for macOS and Windows
	@for os in darwin windows; do echo "vet for $$os"; GOOS=$$os $(GO) vet ./...; done

clean: ## delete what was built
	rm -rf bin out
