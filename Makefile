# One verb for each thing to do; every verb does its own set-up (packages and downloads only when missing).
# CMake does the building (CMakePresets.json); this file only says in which order.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := core
.PHONY: help core setup fetch build plugin test nightly scale mtr twin demo server stop status shell cluster cluster-stop bench lab results ndb ndb-stop tidy format hooks ci install uninstall clean distclean

JOBS ?= $(shell nproc)
# Variables of the verbs below; unset ones leave the choice to the program.
EXP ?=
SCALE ?=
STAGES ?=
PARTS ?=
SUITES ?=
TESTS ?=
ARGS ?=
KIND ?= spider
LAB := build/venv/bin/python -m quarry_lab

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# The long ones, which damage each bit of a file, are the stage `flips` of `make test`.
CORE_TESTS := build/release/quarry_core_test --gtest_brief=1 --gtest_filter='-*.EveryBit*:*.EveryByte*'
core: ## (what plain `make` does) build the core and run its quick tests; nothing more when nothing changed since they passed
	@scripts/setup --for-core
	@cmake --preset release >build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build build/release -j $(JOBS) --target quarry_core_test
	@passed=build/release/core-tests-passed; \
	if [ -e $$passed ] && [ -z "$$(find build/release/quarry_core_test tests/golden -newer $$passed -print -quit)" ]; then \
	  echo "core: nothing changed since its quick tests passed"; \
	else $(CORE_TESTS) && touch $$passed; fi

setup: ## install the packages and Python modules that are missing
	@scripts/setup

fetch: setup ## get a private MariaDB server and its headers into build/mariadb
	@scripts/fetch-mariadb

build: fetch ## build everything: core, tests, tools, plugin
	@cmake --preset release -DQUARRY_MARIADB_ROOT=$(CURDIR)/build/mariadb >build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build build/release -j $(JOBS)

plugin: fetch ## build the engine: build/release/plugin/ha_quarry.so
	@cmake --preset release -DQUARRY_MARIADB_ROOT=$(CURDIR)/build/mariadb >build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build build/release -j $(JOBS) --target ha_quarry
	@ls -l build/release/plugin/ha_quarry.so

test: fetch ## run every test, with counts at the end (STAGES="core sql": only these)
	@scripts/run-tests --jobs $(JOBS) $(STAGES)

nightly: build ## what is too long for each change, hours of it, with counts at the end (PARTS="twin mtr": only these; ARGS="--list" shows them)
	@scripts/nightly $(PARTS) $(ARGS)

scale: build ## many stores, segments, tables and small values, one huge transaction: what each costs, within an hour (ARGS="--only gc", "--share 0.01")
	@cmake --build build/release -j $(JOBS) --target quarry_scale
	@build/venv/bin/python tests/scale/run.py $(ARGS)

mtr: plugin ## MariaDB's own tests with InnoDB and with QUARRY, outputs compared: make mtr SUITES=json,gcol ARGS="--time-limit 30"
	@build/venv/bin/python tests/mtr/run.py $(if $(SUITES),--suites $(SUITES)) $(if $(TESTS),--tests $(TESTS)) $(ARGS)

twin: plugin ## random SQL on QUARRY and on an InnoDB twin: make twin ARGS="--minutes 60 --seed 7"
	@build/venv/bin/python tests/twin/run.py $(ARGS)

demo: build ## load real files into InnoDB and Quarry side by side, compare, kill -9, draw build/report/index.html
	@$(LAB) demo $(ARGS)

server: plugin ## start a private server with ENGINE=QUARRY in build/server
	@scripts/server start

stop: ## stop it
	@scripts/server stop

status: ## is it running, and how to connect
	@scripts/server status

shell: server ## open an SQL shell on it (starts it if needed)
	@scripts/server shell

cluster: plugin ## Spider fronts over replicated shards in build/cluster, or KIND=4 (shards), or KIND=galera (three nodes)
	@scripts/cluster start --kind $(KIND)

cluster-stop: ## stop it
	@[ ! -e build/cluster/cluster.json ] || scripts/cluster stop

bench: $(if $(EXP),build,setup) ## run one experiment: make bench EXP=e1 ARGS="--rounds 1" (without EXP: they are listed; EXP=builds BASE=old.so: two builds)
	@$(LAB) $(if $(filter builds,$(EXP)),builds --baseline $(BASE),$(if $(filter turns,$(EXP)),turns,bench $(if $(EXP),--exp $(EXP)))) $(ARGS)

lab: build ## run the published experiments and write one report: make lab SCALE=quick|full ARGS="--only e1,e4" (ARGS=--dry-run: only the plan); SCALE=guard BASE=old.so: two builds, 15 minutes
	@$(LAB) lab $(if $(SCALE),--scale $(SCALE)) $(if $(BASE),--baseline-plugin $(BASE)) $(ARGS)

results: setup ## docs/results/lab.md from lab/results: make results ARGS="--add build/bench/lab/e1" takes a run in, ARGS=--check changes nothing
	@$(LAB) results $(ARGS)

ndb: setup ## build MySQL NDB Cluster privately (about an hour, once) and start it: the lab then measures it too; scripts/ndb stop ends it
	@scripts/ndb build --jobs $(JOBS)
	@scripts/ndb start

tidy: fetch ## clang-tidy over core, tools and plugin
	@scripts/tidy $(JOBS)

format: setup ## clang-format all C++ files in place
	@scripts/check-style --fix

hooks: ## checks before each commit of this clone: layers, style, documents, the subject's length
	@git config core.hooksPath scripts/hooks && echo "hooks: scripts/hooks is in force (off: git config --unset core.hooksPath)"

ci: ## what continuous integration runs
	@.ci/run

install: ## build the engine for the MariaDB server installed on this machine and put it there; the tools too
	@scripts/setup --for-install
	@scripts/install

uninstall: ## take it away again: refused while a QUARRY table or an undecided commit needs the engine
	@scripts/uninstall

ndb-stop:
	@[ ! -d build/ndb/run ] || scripts/ndb stop

clean: stop cluster-stop ndb-stop ## remove what was built, and private servers with their data (downloads, the private MariaDB and build/venv stay)
	@find build -mindepth 1 -maxdepth 1 ! -name downloads ! -name apt ! -name mariadb ! -name venv ! -name '.*.lock' -exec rm -rf {} +

distclean: stop cluster-stop ndb-stop ## remove build/ altogether
	@rm -rf build
