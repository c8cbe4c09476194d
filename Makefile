# What a newcomer and a developer run. Every target does its own set-up (.ci/setup); it needs Python 3.11, make and the
# package registries. CONTRIBUTING.md has what is run more rarely.

BIN := .venv/bin
PORT ?= 8080

.PHONY: run test test-long test-for check fix eval bench attack simulate mutants wheel image clean

run:
	@.ci/setup run
	@DATAFARI_RAG_HOME=$(CURDIR)/var exec $(BIN)/datafari-rag demo --port $(PORT)

# The suite starts our programs again and again. Where the environment forbids Python to keep what it has compiled, each
# of them compiles every module again, a quarter of its start, and collecting the tests takes twice as long. Empty: allowed.
test test-long test-for mutants: export PYTHONDONTWRITEBYTECODE =

# Three processes on two cores: while one waits for a server, another one computes. WORKERS=0 runs all in one.
WORKERS ?= 3

# Set-up and tests, each with its seconds: $(call timed,PART OF THE SET-UP,OPTIONS).
timed = @begun=$$(date +%s); .ci/setup $(1) || exit; ready=$$(date +%s); \
	$(BIN)/python -m pytest -n $(WORKERS) --durations=10 $(2); status=$$?; \
	echo "make $@: set-up $$((ready - begun)) s, tests $$(($$(date +%s) - ready)) s"; exit $$status

# Every unit, contract, property, attack and end-to-end test once: what a change may have broken.
test:
	$(call timed,test)

# The rest: more seeds and texts, the fault matrix, SolrCloud, the shipped proxies, clients from npm and of other
# environments, what is installed from a registry. On CI the seed is the same in each run, so that no run is red by chance.
test-long: export PROPERTY_SEED := $(or $(PROPERTY_SEED),$(if $(filter true,$(CI)),31,$(shell date +%s)))
test-long:
	@echo "PROPERTY_SEED=$(PROPERTY_SEED)"
	$(call timed,long,-m "slow and not trials")

# What concerns one module, in seconds: make test-for FILE=datafari_rag/core/evidence/choice.py
test-for:
	@.ci/setup dev
	@$(BIN)/python -m pytest -q $$($(BIN)/python -m tests.concerning "$(FILE)" || echo no/test/of/FILE=$(FILE))

# Every attack on a fresh service, embedded and over a real Solr, as one table: those of `make test`, and the long ones,
# with all texts and ten times as many random cases.
attack:
	@.ci/setup long
	FLOOD_SECONDS=1 $(BIN)/python -m pytest -q -n 2 -m "" tests/attack tests/security tests/browser/test_hostile.py

# The service in worlds of which each is made of one number (tests/simulation): SEEDS worlds from FIRST on, every rule
# checked in each. A world takes a tenth of a second of one core; MINUTES=60 stops after an hour and says how many there
# were. One world, event by event: python -m tests.simulation --first 42 --show
SEEDS ?= 2000
FIRST ?= 0
simulate:
	@.ci/setup dev
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) $(if $(MINUTES),--minutes $(MINUTES))

# Whether the tests of rights, budget, links and proof notice each change that tests/mutants/mutants.toml names: an hour or
# two, and a run that is stopped is continued by the next. MUTANTS='--part rights', '--module core/access.py' or
# '--sample 30 --seed 1' tries fewer. Ends with 1 where one survives that is not listed there as equivalent.
mutants:
	@.ci/setup mutants
	.venvs/mutants/bin/python tests/mutants/__main__.py $(MUTANTS)

check:
	@.ci/setup dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit -q -ll -r datafari_rag trials
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python -m pytest -q --cov --cov-report=term:skip-covered tests/core tests/protocols tests/llm_templates tests/conformance tests/test_pipeline.py tests/test_conf_files.py tests/web/test_app.py

fix:
	@.ci/setup dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/write_settings.py
	$(BIN)/python docs/write_catalogues.py
	$(BIN)/python docs/write_structure.py

# The tables of docs/grounding.md and docs/quality.md, from the sets beside the project: labelled claims, then questions
# on the embedded index and on a real Solr.
SETS ?= ../shared/data
eval:
	@.ci/setup dev
	$(BIN)/datafari-rag eval --grounding $(SETS)/grounding --out var/eval --page docs/grounding.md --part claims
	$(BIN)/datafari-rag eval --sets $(SETS) --collection merged --out var/eval --page docs/quality.md

# Beside the floor and the peers, on loopback alone; a part that fails says so and the others go on. Needs Node 20.
# One table and one picture go into docs/performance.md, all else into bench-results. About half an hour with the peers.
bench:
	@.ci/setup peers
	$(BIN)/python -m benchmarks.run --docs

# The wheel of the service alone, for other machines: pip install 'dist/NAME.whl[ingest,jwt]'.
wheel:
	@.ci/setup run
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/datafari_rag-*.whl

image:
	docker build -f deploy/Dockerfile -t datafari-rag .

clean:
	rm -rf .venv .venvs build dist *.egg-info trials/*.egg-info .mypy_cache .ruff_cache .pytest_cache
