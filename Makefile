# `make help` lists the targets. All of them use .venv, which is created on first use.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# --use-pep517: before 23.1 pip builds seqeval in a way that no longer works
# --no-compile: pip would compile all modules, which takes a minute; Python compiles what it imports, and keeps it, even
# where the environment says not to
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --no-compile -c constraints.txt
EXTRAS := dev
export OMP_NUM_THREADS ?= 1
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-real test test-slow faults cluster fuzz round-trips smoke smoke-rows smoke-models table dashboard tables report screenshots diagrams generated docs bench check audit release clean

help:    ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/installed    ## create .venv, with the versions in constraints.txt

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[$(EXTRAS)]"
	@$(BIN)/python -W ignore -c "import ner_experiments.train, ner_experiments.launch.summary"    # compiled for commands
	@touch $@

.PHONY: say-demo
say-demo:
	@echo "make demo: creates .venv with PyTorch and the other dependencies (on first use), then trains six small taggers"
	@echo "on a generated corpus and compares them; two to three minutes with a fast network."

demo: say-demo .venv/installed    ## compare a BiLSTM with an LSTM on the toy corpus, in under three minutes
	$(BIN)/python run.py -m model=lstm,bilstm seed=1,2,3 model.hidden_size=64 optimizer.lr=0.003 \
	    trainer.max_epochs=15 output_dir=outputs/demo

demo-real: .venv/installed    ## measure what GloVe's vectors bring on WNUT-17, both downloaded, in under fifteen minutes
	$(BIN)/ner-experiments data get wnut17
	$(BIN)/ner-experiments data get glove.6B.50d
	$(BIN)/python run.py -m data=wnut17 words=random,glove model=bilstm seed=1,2,3 model.hidden_size=100 \
	    optimizer.lr=0.003 trainer.max_epochs=15 output_dir=outputs/demo

test: .venv/installed    ## run the fast tests, which take at most seconds each
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: .venv/installed    ## run the slow tests: commands of the guides, processes, kills, the report in a browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

faults: .venv/installed    ## inject faults: kills, full disks, damaged files, ... (about ten minutes)
	PYTHONPATH=tests/helpers $(BIN)/python tests/campaigns/faults.py

cluster: .venv/installed    ## train one model on two nodes, kill each and resume: by torchrun in two network namespaces, and by SLURM (root)
	PYTHONPATH=tests/helpers $(BIN)/python tests/campaigns/cluster.py

smoke: smoke-rows smoke-models    ## train and score every row of every table, and every architecture, for two steps

smoke-rows: .venv/installed
	$(BIN)/ner-experiments smoke

smoke-models: .venv/installed
	$(BIN)/python run.py -m 'model=glob(*)' data=toy_en,toy_zh trainer=smoke runtime.progress=false \
	    output_dir=outputs/smoke

fuzz: .venv/installed    ## fuzz the readers: a million valid, damaged and random inputs, to be read correctly or refused
	PYTHONPATH=tests/helpers:tests/campaigns $(BIN)/python -W ignore -m fuzz

round-trips: .venv/installed    ## convert corpora to every format and back, and compare every mention
	$(BIN)/python -m pytest -q -m 'slow or not slow' tests/data/test_round_trips.py

table: .venv/installed    ## print a published table beside the finished runs: make table T=yang2020_table12
	@$(BIN)/ner-experiments table $(T)

dashboard: .venv/installed    ## create the W&B workspace of a table's runs: make dashboard T=yang2020_table12
	@$(BIN)/ner-experiments dashboard $(T)

tables: .venv/installed    ## generate the pages under results/ from the archived runs
	@$(BIN)/ner-experiments tables

report: .venv/installed    ## build the report as static pages: outputs/report/index.html; for other runs: RUNS=DIR
	$(BIN)/ner-experiments report $(if $(RUNS),--runs $(RUNS))

screenshots: .venv/installed    ## take the screenshots of docs/report.md, of results/ and of a small sweep on the toy corpus
	$(BIN)/python docs/screenshots.py

diagrams: .venv/installed    ## draw docs/diagrams/*.svg and docs/map.svg from the code; needs Graphviz (dot)
	$(BIN)/python docs/diagrams.py
	$(BIN)/python docs/rooms.py

generated: .venv/installed    ## write docs/configuration.md, docs/python.ipynb and the verdicts in README.md from what they show
	$(BIN)/python docs/generated.py

docs: .venv/docs    ## build the guides and the API reference as a site that opens from disk: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict && echo site/index.html

.venv/docs: .venv/installed
	$(PIP) -e ".[docs]"
	@touch $@

THREADS ?= 2
BENCHMARKS := time_breakdown kernels units peephole machine_limit onednn optimizers scaling threads many_seeds bf16 batches startup vectors scoring comparing looks growth
bench: .venv/installed    ## measure speed and memory for benchmarks/README.md; peers: NCRFPP=a-clone FLAIR_PYTHON=a-python SPACY_PYTHON=a-python
	$(BIN)/python benchmarks/end_to_end.py --threads $(THREADS) \
	    $(if $(NCRFPP),--ncrfpp $(NCRFPP)) $(if $(FLAIR_PYTHON),--flair-python $(FLAIR_PYTHON))
	$(BIN)/python benchmarks/tagging.py --threads $(THREADS) \
	    $(if $(SPACY_PYTHON),--spacy-python $(SPACY_PYTHON)) $(if $(FLAIR_PYTHON),--flair-python $(FLAIR_PYTHON))
	PYTHONPATH=$(NCRFPP) $(BIN)/python benchmarks/crf.py --threads $(THREADS)
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py --threads $(THREADS) || exit; done
	$(BIN)/python benchmarks/tables.py

check: .venv/installed    ## check formatting, lint, types, the import rule, the generated files of docs/, the runs of registered verdicts, the workflow of CI, and known vulnerabilities of constraints.txt
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generated.py --check
	$(BIN)/ner-experiments register --verify
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(MAKE) --no-print-directory audit

OSV := https://api.osv.dev/v1/query
audit: .venv/installed    ## look up known vulnerabilities of constraints.txt in OSV, if it can be reached
	@if timeout 5 $(BIN)/python -c "import requests; requests.get('$(OSV)', timeout=4)" 2>/dev/null; then \
	    $(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip --vulnerability-service osv --progress-spinner off; \
	else echo "audit: skipped, $(OSV) cannot be reached"; fi

PYTHONS ?= python3.11 python3.12 python3.13
release: .venv/installed    ## build the wheel, and compare two taggers from it in a clean environment of each of PYTHONS
	rm -rf dist && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	set -e; for python in $(PYTHONS); do \
	    folder=$$(mktemp -d); $$python -m venv $$folder; \
	    $$folder/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl; \
	    (cd $$folder && bin/ner-experiments train -m model=lstm,bilstm seed=1,2,3 model.hidden_size=64 \
	        optimizer.lr=0.003 trainer.max_epochs=15 runtime.progress=false); \
	    rm -rf $$folder; echo "$$python: the wheel works"; done

clean:    ## remove .venv and all outputs
	rm -rf .venv outputs build dist site *.egg-info
