# One command does each thing, and sets up first what it needs. `make help` names them.
# Plain make (3.81 and later) and sh; README.md has the same lines for Windows, conda and life without make.
SHELL = /bin/sh
.NOTPARALLEL:
.DEFAULT_GOAL = help
.PHONY: help setup lab test check notebooks models data bench sabotage test-portability faults pins clean

VENV_PYTHON = .venv/bin/python
# What a Python must be to serve: of the right version, and able to make environments.
SUITABLE = import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

# Run tools/setup_environment.py by the first Python that really starts and is suitable (a name on the path may be an
# empty shim). A Python named with PYTHON= is taken or refused, never replaced by another one.
define with_suitable_python
if [ -n "$(PYTHON)" ]; then \
  if command -v "$(PYTHON)" >/dev/null 2>&1; then exec "$(PYTHON)" tools/setup_environment.py $(1); fi; \
  echo "setup: PYTHON=$(PYTHON) cannot be run: name a Python 3.11, 3.12 or 3.13" >&2; exit 1; \
fi; \
for python in python3 python3.11 python3.12 python3.13 python; do \
  if "$$python" -c '$(SUITABLE)' >/dev/null 2>&1; then exec "$$python" tools/setup_environment.py $(1); fi; \
done; \
echo "setup: this course needs Python 3.11, 3.12 or 3.13 (with its venv module) and none was found: install one, or name it, for example: make test PYTHON=/path/to/python3.12" >&2; \
exit 1
endef

help: ## name the commands
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r command what; do printf '%-24s %s\n' "  $$command" "$$what"; done

setup: ## make .venv with everything pinned in requirements.txt (PYTHON=... names a Python)
	@if [ -z "$(PYTHON)" ] && [ -x $(VENV_PYTHON) ] && $(VENV_PYTHON) tools/setup_environment.py --ready 2>/dev/null; \
	then exit 0; fi; $(call with_suitable_python,)

lab: setup ## open the course in JupyterLab at chapter 00 (PORT=... names a port)
	@$(VENV_PYTHON) -m tools.lab $(if $(PORT),--port $(PORT),)

test: setup ## run everything: checks, unit tests, every notebook, planted faults, a browser
	@$(VENV_PYTHON) -m tools.run_tests $(if $(STAGE),--only "$(STAGE)",)

check: setup ## run what takes less than a minute: style, import contracts, notebooks' rules
	@$(VENV_PYTHON) -m tools.run_tests --quick

test-portability: setup ## run the notebooks with two threads and as older processors would
	@$(VENV_PYTHON) -m tools.run_tests --portability

notebooks: setup ## run every notebook anew and normalise it (NOTEBOOK=... names one)
	@OMP_NUM_THREADS=1 TRANSFORMER_LIB_PROGRESS=0 $(VENV_PYTHON) -m tools.notebooks execute $(NOTEBOOK)
	@$(VENV_PYTHON) -m tools.concordance

models: setup ## train every model of data/models again; goes on where it was stopped (MODEL=... names a recipe)
	@for recipe in $(if $(MODEL),recipes/$(MODEL).py,`grep -l '__name__ == "__main__"' recipes/*.py`); do \
	name=`basename "$$recipe" .py`; echo "--- $$name ---"; \
	OMP_NUM_THREADS=1 $(VENV_PYTHON) -m "recipes.$$name" || exit 1; \
	done

data: ## rebuild data/ byte for byte (an environment of its own, .venv-data)
	@$(call with_suitable_python,--data)
	@.venv-data/bin/python data/prepare.py $(DATA_ARGS)

bench: setup ## measure speed and memory as ratios
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m benchmarks.run

faults: setup ## plant every fault of tools/faults.py and see whether its chapter notices
	@OMP_NUM_THREADS=1 TRANSFORMER_LIB_PROGRESS=0 $(VENV_PYTHON) -m tools.faults

sabotage: setup ## break the library line by line and see whether its tests notice (MODULE=... names one file)
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m tools.sabotage $(MODULE)

pins: setup ## compile requirements.txt from pyproject.toml anew (needs uv)
	@$(VENV_PYTHON) -m tools.setup_pins

clean: ## remove what can be made again; .venv stays
	@rm -rf build mutants .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache *.egg-info
	@find . -name .venv -prune -o -name .venv-data -prune -o -name __pycache__ -print -o -name .ipynb_checkpoints -print \
	| while read -r folder; do rm -rf "$$folder"; done
