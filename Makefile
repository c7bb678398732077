# `make help` lists what there is. Everything works in .venv, which is made when it is missing.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# --use-pep517: before 23.1 pip builds seqeval in a way that no longer works
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -c constraints.txt
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow faults fuzz smoke table dashboard tables report screenshots diagrams docs bench check audit clean

help:    ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/installed    ## .venv with the versions of constraints.txt

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[dev]"
	@touch $@

demo: .venv/installed    ## a small sweep on the toy corpus, with its table, in under three minutes
	$(BIN)/python run.py -m model=residual layers=1,2,3 model.hidden_size=64 model.dense_size=128 \
	    optimizer.lr=0.003 trainer.max_epochs=15 output_dir=outputs/demo

test: .venv/installed    ## the tests that take seconds each at most
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: .venv/installed    ## those that take longer: commands of the guides, processes, kills, the report in a browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

faults: .venv/installed    ## kills, full disks, damaged files, ...: some ten minutes
	PYTHONPATH=tests/helpers $(BIN)/python tests/campaigns/faults.py

smoke: .venv/installed    ## every row of every table, and every architecture, trains two steps and is scored
	$(BIN)/ner-experiments smoke
	$(BIN)/python run.py -m 'model=glob(*)' data=toy_en,toy_zh trainer=smoke runtime.progress=false \
	    output_dir=outputs/smoke

fuzz: .venv/installed    ## a million inputs, whole, damaged and rubbish, for the readers to read right or refuse
	PYTHONPATH=tests/helpers:tests/campaigns $(BIN)/python -W ignore -m fuzz

table: .venv/installed    ## a published table beside the runs there are: make table T=yang2020_table12
	@$(BIN)/ner-experiments table $(T)

dashboard: .venv/installed    ## the W&B workspace of a table's runs: make dashboard T=yang2020_table12
	@$(BIN)/ner-experiments dashboard $(T)

tables: .venv/installed    ## the pages under results/, from the runs that are kept there
	@$(BIN)/ner-experiments tables

report: .venv/installed    ## all of it as pages that open from disk: report/index.html; of other runs: RUNS=DIR
	$(BIN)/ner-experiments report $(if $(RUNS),--runs $(RUNS))

screenshots: .venv/installed    ## those of docs/report.md, of results/ and of a small sweep on the toy corpus
	$(BIN)/python docs/screenshots.py

diagrams: .venv/installed    ## docs/diagrams/*.svg, drawn of the architectures as they run, by Graphviz (dot)
	$(BIN)/python docs/diagrams.py

docs: .venv/docs    ## the pages and the API reference as a site to be opened from the disk: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo site/index.html

.venv/docs: .venv/installed
	$(PIP) -e ".[docs]"
	@touch $@

THREADS ?= 2
BENCHMARKS := time_breakdown kernels units peephole machine_limit scaling threads bf16 batches startup vectors scoring
bench: .venv/installed    ## speed and memory, for benchmarks/README.md; peers: NCRFPP=a-clone FLAIR_PYTHON=a-python
	$(BIN)/python benchmarks/end_to_end.py --threads $(THREADS) \
	    $(if $(NCRFPP),--ncrfpp $(NCRFPP)) $(if $(FLAIR_PYTHON),--flair-python $(FLAIR_PYTHON))
	PYTHONPATH=$(NCRFPP) $(BIN)/python benchmarks/crf.py --threads $(THREADS)
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py --threads $(THREADS) || exit; done
	$(BIN)/python benchmarks/tables.py

check: .venv/installed    ## formatting, lint, types, which module may import which, known faults of constraints.txt
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory audit

OSV := https://api.osv.dev/v1/query
audit: .venv/installed    ## known faults of constraints.txt, asked of OSV where it can be reached
	@if timeout 5 $(BIN)/python -c "import requests; requests.get('$(OSV)', timeout=4)" 2>/dev/null; then \
	    $(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip --vulnerability-service osv --progress-spinner off; \
	else echo "audit: skipped, $(OSV) cannot be reached"; fi

clean:    ## .venv and all outputs
	rm -rf .venv outputs report build dist site *.egg-info
