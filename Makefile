# What a newcomer and a developer run. `make run` and `make test` need Python 3.11, make and the package registries;
# the real Solr also Java 17 and Maven, the clients Node 20.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run
DEV_STAMP := $(VENV)/.dev
CLIENT_STAMPS := .venvs/.npm $(addprefix .venvs/.,langchain llamaindex litellm llamacpp mcp openapi)
PORT ?= 8080

.PHONY: run wheel test test-quick test-long test-for setup setup-long clients open-webui solr-jars peers programs check fix clean lock bench eval eval-meaning calibrate rights readme screenshots faults simulate simulate-long index-trials soak attack history mutants

run: $(RUN_STAMP)
	@DATAFARI_RAG_HOME=$(CURDIR)/var exec $(BIN)/datafari-rag demo --port $(PORT)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# uv installs in a tenth of pip's time. Where it is absent, or cannot reach the index that pip is configured for, pip
# does the same: $(call install,PYTHON,OPTIONS).
UV := $(BIN)/uv
install = $(UV) pip install --quiet --python $(1) $(2) \
	|| $(BIN)/python -m pip --python $(1) install --quiet --disable-pip-version-check $(2)

$(UV): | $(VENV)/bin/python
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'

$(RUN_STAMP): setup.cfg pyproject.toml requirements.lock | $(UV)
	@echo "Installing datafari_rag (once)…"
	@$(call install,$(BIN)/python,--require-hashes -r requirements.lock)
	@$(call install,$(BIN)/python,--no-deps -e .)
	@touch $@

$(DEV_STAMP): export UV_COMPILE_BYTECODE = 1
$(DEV_STAMP): setup.cfg pyproject.toml requirements-dev.lock | $(UV)
	$(call install,$(BIN)/python,--require-hashes -r requirements-dev.lock)
	$(call install,$(BIN)/python,--no-deps --no-build-isolation -e .)
	@touch $@ $(RUN_STAMP)

# The wheel for other machines: pip install 'dist/NAME.whl[ingest,jwt]'.
wheel: | $(VENV)/bin/python
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/datafari_rag-*.whl

# Clients that others wrote: those from npm, and Python ones in environments of their own.
clients: $(CLIENT_STAMPS)

.venvs/.npm: tests/clients/package-lock.json | programs
	@npm ci --prefix tests/clients --ignore-scripts --no-audit --no-fund --loglevel=error \
	  && mkdir -p .venvs && touch $@ || test "$$CI" != true

.venvs/.langchain: tests/clients/requirements.txt | $(UV)
$(filter-out .venvs/.npm .venvs/.langchain,$(CLIENT_STAMPS)): .venvs/.%: tests/clients/requirements-%.txt | $(UV)
$(filter-out .venvs/.npm,$(CLIENT_STAMPS)) .venvs/.mutants: .venvs/.%:
	@$(BIN)/python -m venv --without-pip .venvs/$*
	@($(call install,.venvs/$*/bin/python,-r $<)) && touch $@ || test "$$CI" != true

# Open WebUI itself, as its makers publish it, in front of the service with a real browser; the pictures of
# docs/chat-uis.md. Its libraries for models of its own (several GB) are left out: it has none to run here.
open-webui: $(DEV_STAMP) programs
	@$(VENV)/bin/python -m venv .venvs/open-webui
	@$(UV) pip install --quiet --python .venvs/open-webui/bin/python \
	  --override tests/clients/overrides-open-webui.txt -r tests/clients/requirements-open-webui.txt
	$(BIN)/python -m tests.clients.open_webui

# The suite starts our programs again and again. Where the environment forbids Python to keep what it has compiled, each
# of them compiles every module again, a quarter of its start, and collecting the tests takes twice as long. Empty: allowed.
test test-quick test-long test-for mutants: export PYTHONDONTWRITEBYTECODE =

# Three processes on two cores: while one waits for a server, another one computes. WORKERS=0 runs all in one.
WORKERS ?= 3

# Set-up and tests, each with its seconds: $(call timed,TARGET OF THE SET-UP,OPTIONS).
timed = @begun=$$(date +%s); $(MAKE) --no-print-directory --jobs=4 $(1) || exit; ready=$$(date +%s); \
	$(BIN)/python -m pytest -n $(WORKERS) --durations=10 $(2); status=$$?; \
	echo "make $@: set-up $$((ready - begun)) s, tests $$(($$(date +%s) - ready)) s"; exit $$status

# Every unit, contract, property, attack and end-to-end test once: what a change may have broken.
test:
	$(call timed,setup)

# The rest: more seeds and texts, the fault matrix, SolrCloud, the shipped proxies, clients from npm and of other
# environments, what is installed from a registry. What tries thousands of times what is tried here has a target of its
# own: attack, rights, simulate-long, index-trials, history.
# On CI the seed is the same in each run, so that no run is red by chance.
test-long: export PROPERTY_SEED := $(or $(PROPERTY_SEED),$(if $(filter true,$(CI)),31,$(shell date +%s)))
test-long:
	@echo "PROPERTY_SEED=$(PROPERTY_SEED)"
	$(call timed,setup-long,-m "slow and not trials")

# What concerns one module, in seconds: make test-for FILE=datafari_rag/core/passages/selection.py
test-for: $(DEV_STAMP)
	@$(BIN)/python -m pytest -q $$($(BIN)/python -m tests.concerning "$(FILE)" || echo no/test/of/FILE=$(FILE))

# All that the suites need; the parts do not wait for each other. What a registry does not give is named at the end.
setup: $(DEV_STAMP) .venvs/.npm programs solr-jars
setup-long: PROGRAMS += buildah=buildah mmdebstrap=mmdebstrap
setup-long: setup $(CLIENT_STAMPS)

# The real Solr's jars from Maven Central, 85 MB, once. Needs nothing of $(DEV_STAMP).
solr-jars: programs | $(VENV)/bin/python
	@said=$$($(BIN)/python -c "from datafari_rag_trials.solr.jars import jars; jars(print)" 2>&1) \
	  || { echo "$$said" | tail -n 1; test "$$CI" != true; }

# A minute: the rules, and the protocols over the real application; starts no other program.
test-quick: $(DEV_STAMP)
	$(BIN)/python -m pytest -q tests/core tests/protocols tests/llm_templates tests/conformance tests/test_pipeline.py tests/web/test_app.py

# Programs of Debian that tests need, installed where this may do that: Java and Maven for the real Solr, Node for
# clients, the browser, two proxies, checkers of unit files and manifests, the data of OCR. On CI none may be missing.
# policy-rc.d keeps the proxies from being started by their installation.
PROGRAMS := java=default-jdk-headless mvn=maven node=nodejs npm=npm systemd-analyze=systemd \
  chromium=chromium,fonts-liberation nginx=nginx-light apache2=apache2 kubectl=kubernetes-client \
  tesseract=tesseract-ocr redis-server=redis-server antiword=antiword catdoc=catdoc
programs: export PATH := $(PATH):/usr/sbin
programs:
	@missing=""; for one in $(PROGRAMS); do command -v $${one%%=*} >/dev/null || missing="$$missing,$${one#*=}"; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
	    $$(echo "$$missing" | tr , ' ') >/dev/null; rm -f /usr/sbin/policy-rc.d; \
	fi; for one in $(PROGRAMS); do \
	  command -v $${one%%=*} >/dev/null || test "$$CI" != true || { echo "$${one%%=*} is missing"; exit 1; }; done

# The promise of docs/security.md on 100,000 new random cases, two thirds of them embedded and one third on the real Solr,
# and the rule itself on 67,000 more; the seed is printed. Takes about half an hour.
rights: $(DEV_STAMP)
	PROPERTY_CASES=67000 PROPERTY_SEED=random $(BIN)/python -m pytest -q tests/security/test_nobody_learns.py tests/core/test_access.py

# The peers of the benchmark, each as its makers publish it, in an environment of its own, every package pinned.
peers: $(addprefix .venvs/.peer-,haystack langchain litellm)

.venvs/.peer-%: benchmarks/peers/%.txt | $(UV)
	@test -x .venvs/$*/bin/python || $(BIN)/python -m venv .venvs/$*
	@($(call install,.venvs/$*/bin/python,-r $<)) && touch $@ \
	  || echo "NOT INSTALLED: $*; its row will say so"

# Beside the floor and the peers, on loopback alone; a part that fails says so and the others go on. Needs Node 20.
# One table and one picture go into docs/performance.md, all else into bench-results. About half an hour with the peers.
bench: $(DEV_STAMP) peers
	$(BIN)/python -m benchmarks.run --docs

# The fault matrix with real processes, printed as a table and written into docs/faults.md. About twenty minutes.
FAULTS := $(addprefix tests/end_to_end/,test_faults.py test_model_faults.py test_server.py \
  test_shares.py test_rush.py test_revocation.py test_solr_cloud_killed.py) \
  $(addprefix tests/commands/,test_index_killed.py test_audit.py) tests/web/test_clock.py
faults: $(DEV_STAMP)
	FAULTS_PAGE=docs/faults.md $(BIN)/python -m pytest -q -m "" $(FAULTS)

# The service in worlds of which each is made of one number (tests/simulation): SEEDS worlds from FIRST on, every rule
# checked in each. A world takes a tenth of a second of one core; MINUTES=60 stops after an hour and says how many there
# were. One world, event by event: python -m tests.simulation --first 42 --show
SEEDS ?= 2000
FIRST ?= 0
BOUND = $(if $(MINUTES),--minutes $(MINUTES))
simulate: $(DEV_STAMP)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) $(BOUND)

simulate-long: $(DEV_STAMP)
	$(BIN)/python -m tests.simulation --seeds 100000 --first $(FIRST) $(BOUND)

# Every attack on a fresh service, embedded and over a real Solr, as one table: those of `make test`, and the long ones,
# with all texts and ten times as many random cases.
attack: $(DEV_STAMP) clients programs
	FLOOD_SECONDS=1 $(BIN)/python -m pytest -q -n 2 -m "" tests/attack tests/security tests/browser/test_hostile.py

# The embedded index: 50 kills at random moments, 50 more while files of every kind are parsed, and the memory that
# 100,000 documents need.
index-trials: $(DEV_STAMP)
	FAULTS_PAGE=docs/faults.md $(BIN)/python -m pytest -q -m trials tests/commands/test_index.py tests/commands/test_index_killed.py

# 100,000 streamed requests: memory, descriptors and errors as they go on, into docs/faults.md. A quarter of an hour.
soak: $(DEV_STAMP)
	$(BIN)/python -m benchmarks.soak --write

# Rights change and documents go while readers ask a real SolrCloud whose nodes are killed and paused: half an hour, no
# anomaly. The history is kept in var/history.jsonl, what it came to in docs/faults.md.
# HISTORY_MINUTES and HISTORY_SEED choose another one.
history: export HISTORY_MINUTES ?= 30
history: export HISTORY_FILE ?= $(CURDIR)/var/history.jsonl
history: $(DEV_STAMP)
	HISTORY_PAGE=docs/faults.md FAULTS_PAGE=docs/faults.md $(BIN)/python -m pytest -q -m slow tests/end_to_end/test_history.py

# Whether the tests of rights, budget, links and proof notice each change that tests/mutants/mutants.toml names: an hour or two,
# and a run that is stopped is continued by the next. MUTANTS='--part rights', '--module core/access.py' or '--sample 30 --seed 1'
# tries fewer. Ends with 1 where one survives that is not listed there as equivalent.
mutants: $(DEV_STAMP) .venvs/.mutants
	.venvs/mutants/bin/python tests/mutants/__main__.py $(MUTANTS)

.venvs/.mutants: tests/mutants/requirements.txt | $(UV)

check: $(DEV_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit -q -ll -r datafari_rag datafari_rag_trials
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python -m pytest -q --cov --cov-report=term:skip-covered tests/core tests/protocols tests/llm_templates tests/conformance tests/test_pipeline.py tests/test_conf_files.py tests/web/test_app.py

fix: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/write_settings.py
	$(BIN)/python docs/write_catalogues.py
	$(BIN)/python docs/write_structure.py

screenshots: $(DEV_STAMP) programs
	$(BIN)/python -m tests.browser.screenshots

readme: $(DEV_STAMP)
	README_UPDATE=1 $(BIN)/python -m pytest -q -m "" tests/test_readme.py

# Every version with its hashes, kept where it was as far as the requirements allow: of what is run, and of the tests.
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
lock: $(UV)
	$(LOCK) setup.cfg requirements-dev.in --all-extras -o requirements-dev.lock
	$(LOCK) setup.cfg $(addprefix --extra ,ingest jwt cloud redis otel stub conformance) -c requirements-dev.lock -o requirements.lock

# The tables of docs/grounding.md and docs/quality.md, from the sets beside the project: labelled claims, then questions
# on the embedded index and on a real Solr.
SETS ?= ../shared/data
eval: $(DEV_STAMP)
	$(BIN)/datafari-rag eval --grounding $(SETS)/grounding --out var/eval --page docs/grounding.md --part claims
	$(BIN)/datafari-rag eval --sets $(SETS) --out var/eval --page docs/quality.md

# The weights and the threshold of rag.evidence.min=auto, printed to be put into core/passages/budget_fitting.py, and
# what they keep and stop, into the same page. Downloads both embedding models; indexes are kept in var/calibrate.
calibrate: $(DEV_STAMP)
	$(BIN)/python -m datafari_rag_trials.evaluation.calibrate --sets $(SETS) --page docs/quality.md \
	  --model "$$($(BIN)/datafari-rag model get bge-small-en)=en" \
	  --model "$$($(BIN)/datafari-rag model get e5-small-multilingual)=en,fr"

# Words, meaning and both on the same questions, into docs/quality-meaning.md: English with one model, English and French with
# another. What is stopped is continued by the next run. EVERY asks a share of the questions alone; those in other words are
# few, and all of them are asked.
EVERY ?= 4
EVAL_MEANING = $(BIN)/datafari-rag eval --sets $(SETS) --resume --no-baselines \
  --vary retrieval.method=bm25,vector,hybrid --page docs/quality-meaning.md --conf var/eval-$(1)/rag.properties --out var/eval-$(1)
OTHER_WORDS = --engine embedded --collection merged --only reworded --only no-shared-words
eval-meaning: $(DEV_STAMP)
	@for one in bge-small-en e5-small-multilingual; do \
	  at=$$($(BIN)/datafari-rag model get $$one) && mkdir -p var/eval-$$one && to=var/eval-$$one/rag.properties && \
	  printf 'embeddings.endpoint=%s\n' "$$at" > $$to && chmod 600 $$to; done
	$(call EVAL_MEANING,bge-small-en) --every $(EVERY) --engine embedded --collection merged --part meaning
	$(call EVAL_MEANING,bge-small-en) --every $(EVERY) --engine embedded --collection multihop --collection structure \
	  --part meaning-alone
	$(call EVAL_MEANING,bge-small-en) --every $(EVERY) --engine solr --collection merged --part meaning-solr
	$(call EVAL_MEANING,e5-small-multilingual) --every $(EVERY) --engine embedded --collection merged \
	  --collection xquad-across --part meaning-multilingual
	$(call EVAL_MEANING,bge-small-en) $(OTHER_WORDS) --part other-words
	$(call EVAL_MEANING,e5-small-multilingual) $(OTHER_WORDS) --part other-words-multilingual

clean:
	rm -rf $(VENV) .venvs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
