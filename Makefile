# `make` lists the targets. Each one creates .venv from nothing when needed.

VENV      := .venv
RUN       := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CHECKERS  := $(VENV)/.checkers
WRITERS   := $(VENV)/.writers

# The first of these that is Python 3.11 or newer and can create environments; PYTHON=... overrides.
PYTHON  ?=
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3 python
USABLE  := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# An environment does not survive a move of this folder: its commands hold absolute paths.
HERE := $(shell cat $(VENV)/.here 2>/dev/null)
ifneq ($(HERE),)
ifneq ($(HERE),$(CURDIR))
.PHONY: $(INSTALLED) $(CHECKERS) $(WRITERS)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help docs durations gpu-bench gpu-check gpu-kernels screenshots figures peers random-models campaigns tour test test-full fuzz fuzz-arith fuzz-files fuzz-math mutants lab latency monkey bench sweep tuning check check-style check-types check-layers check-pages format golden clean

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | column -t -s @ 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

tour: $(INSTALLED) ## run the quickstart notebook here; its results go to build/tour/
	@$(RUN)/dlcompiler tour --output build/tour --overwrite

test: $(INSTALLED) ## run the tests, and one of twenty cases of campaigns; ARGS="tests/ir -k split" selects some
	@$(RUN)/python tests/run_all.py $(ARGS)

durations: $(INSTALLED) ## keep how long each file of tests took, after a whole `make test` on an idle machine of two cores
	@$(RUN)/python -m tests.durations

test-full: $(INSTALLED) ## try every operator on all combinations of layouts, dtypes and shapes, and 5,000 builds (hours)
	@$(RUN)/python -m pytest -q --full -n auto tests/ops tests/runtime/test_build_cycles.py $(ARGS)

fuzz: $(INSTALLED) ## try random schedules, going on where the last run stopped (SECONDS=600; Ctrl-C is safe)
	@$(RUN)/python -m tests.fuzz_schedules --seconds $(or $(SECONDS),600) $(ARGS)

fuzz-arith: $(INSTALLED) ## simplify 100,000 random expressions of each integer family (COUNT=…, ARGS="--seed 2")
	@$(RUN)/python -m tests.fuzz_arith --count $(or $(COUNT),100000) $(ARGS)

fuzz-files: $(INSTALLED) ## damage 10,000 files of each kind and read them (COUNT=…, ARGS="--seed 2 --reader link")
	@$(RUN)/python -m tests.fuzz_files --count $(or $(COUNT),10000) $(ARGS)

random-models: $(INSTALLED) ## compile and run 2,000 random graphs, of which the tests try 400; keeps what it prints (ten minutes)
	@DLCOMPILER_OBJECT_CACHE=off $(RUN)/python -m tests.fuzz_graphs --models --cases 2000 \
	  | tee tests/graph/execution/random_models.txt

campaigns: $(INSTALLED) ## run all cases of the campaigns of which CI runs an eighth; keeps what it prints (half an hour)
	@{ git log -1 --format='revision %h, %cs'; DLCOMPILER_TEST_SHARE=1 $(RUN)/python tests/run_all.py -q --disable-warnings \
	    -m 'campaign(longest=True)'; } | grep -v '$(CURDIR)' | tee tests/campaigns.txt

fuzz-math: $(INSTALLED) ## measure the errors of exp, log, sin … on all float32, going on where the last run stopped (SECONDS=600)
	@$(RUN)/python -m tests.fuzz_math --seconds $(or $(SECONDS),600) $(ARGS)

mutants: $(INSTALLED) ## make mistakes in the compiler on purpose, and see which check notices each
	@$(RUN)/python -m tests.mutants $(ARGS)

gpu-kernels: $(INSTALLED) ## compile every GPU program of the tests for each architecture, and run it in OpenCL (hours; ARGS=--oclgrind then looks for races)
	@DLCOMPILER_TEST_SHARE=1 $(RUN)/python -m pytest -q -n auto -p tests.gpu_kernels.collecting --ignore tests/widgets tests
	@$(RUN)/python -m tests.gpu_kernels build/gpu-kernels $(ARGS)

gpu-check: $(INSTALLED) ## run every GPU program of the tests on the NVIDIA GPU of this machine (hours)
	@DLCOMPILER_TEST_SHARE=1 $(RUN)/python -m pytest -q -n auto -p tests.gpu_kernels.collecting --ignore tests/widgets tests
	@$(RUN)/python -m tests.gpu_kernels build/gpu-kernels --device $(ARGS)

gpu-bench: $(INSTALLED) ## time kernels on the NVIDIA GPU of this machine beside PyTorch (ARGS="--save FILE")
	@$(RUN)/dlcompiler bench --suite gpu-device $(ARGS)

lab: $(INSTALLED) ## open JupyterLab on the quickstart notebook
	@$(RUN)/jupyter lab notebooks/01_quickstart.ipynb

latency: $(INSTALLED) ## measure the Explorer in a real JupyterLab, by the page's own clock (ARGS="--clicks 20 gemm")
	@$(RUN)/python -m tests.widgets.latency $(ARGS)

monkey: $(INSTALLED) ## click at random in the Explorer (SECONDS=600, ARGS="--seed 26 --lab")
	@$(RUN)/python -m tests.widgets.monkey --seconds $(or $(SECONDS),600) $(ARGS)

bench: $(INSTALLED) ## measure all tables beside the peers that are installed; writes docs/BENCHMARKS.md (half an hour)
	@$(RUN)/dlcompiler bench --suite paper --save docs/benchmarks/paper.json; status=$$?; \
	  $(RUN)/dlcompiler bench --page docs/benchmarks/paper.json > docs/BENCHMARKS.md && exit $$status

sweep: $(INSTALLED) ## measure 1,000 works on one thread and on two; writes docs/SWEEP.md (half an hour)
	@for n in 1 2; do $(RUN)/dlcompiler bench --suite sweep --threads $$n --save docs/benchmarks/sweep-$$n.json || exit 1; done
	@$(RUN)/dlcompiler bench --page docs/benchmarks/sweep-1.json docs/benchmarks/sweep-2.json > docs/SWEEP.md

tuning: $(INSTALLED) ## compare the tuners on the replay tables, then tune live; writes docs/benchmarks/tuning.json (a quarter of an hour)
	@$(RUN)/dlcompiler bench --suite tuning --live --overwrite --save docs/benchmarks/tuning.json

peers: $(INSTALLED) ## install PyTorch and ONNX Runtime, to be measured beside (several GB)
	@$(RUN)/python -m pip install -q --disable-pip-version-check --editable '.[peers]'

torch-operators: $(INSTALLED) ## try the operators of PyTorch's own tests; writes docs/TORCH_OPERATORS.md (half an hour)
	@$(RUN)/python -m tests.graph.frontends.torch_report $(ARGS) > docs/TORCH_OPERATORS.md

figures: $(INSTALLED) ## print the measured figures of the compiler and a description of the machine
	@$(RUN)/dlcompiler bench --figures

docs: $(WRITERS) ## build the documentation, with the notebooks run, into build/docs/html, and look at it
	@$(RUN)/python -m sphinx -W --keep-going -q -c docs -d build/docs/doctrees . build/docs/html
	@$(RUN)/python -m tests.docs_site build/docs/html
	@echo "build/docs/html/docs/index.html"

screenshots: $(INSTALLED) ## take the screenshots of the documentation anew (needs chromium); look at them
	@$(RUN)/python -m tests.widgets.screenshots $(ARGS)

check: check-style check-types check-layers check-pages ## run every static check (make -k check: do not stop at the first)

check-style: $(CHECKERS)
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .

check-types: $(CHECKERS)
	@$(RUN)/mypy

check-layers: $(CHECKERS)
	@$(RUN)/lint-imports

check-pages: $(INSTALLED)
	@$(RUN)/python -m pytest -q -k up_to_date tests/views tests/bench
	@$(RUN)/python -m pytest -q tests/architecture/test_documentation.py

format: $(CHECKERS) ## fix what the style checks can fix
	@$(RUN)/ruff check --fix .
	@$(RUN)/ruff format .

golden: $(INSTALLED) ## write the golden texts anew (ARGS=tests/ir: some); read the diff before committing
	@$(RUN)/python -m pytest --update-golden $(or $(ARGS),tests); status=$$?; \
	  git status --short tests/golden; exit $$status

$(WRITERS): $(INSTALLED)
	@echo "Installing what writes the documentation into $(VENV)"
	@$(RUN)/python -m pip install -qq --disable-pip-version-check --group docs
	@touch $@

clean: ## remove what builds and runs produced, and the environment
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .import_linter_cache .hypothesis $(VENV)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@if [ -e $(VENV)/.here ] && [ "$$(cat $(VENV)/.here)" != "$(CURDIR)" ]; then rm -rf $(VENV); fi
	@if ! $(RUN)/python -c '$(USABLE)' 2>/dev/null; then \
	  for python in $(PYTHONS); do \
	    if "$$python" -c '$(USABLE)' 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer that can create environments (tried: $(PYTHONS))." >&2; \
	    echo "Install one (on Debian and Ubuntu with its package python3-venv), or name it: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	  fi; \
	  echo "Creating $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing dlcompiler and what it needs into $(VENV); the first time takes a few minutes"
	@$(RUN)/python -m pip install -qq --disable-pip-version-check 'pip>=25.1'
	@$(RUN)/python -m pip install -qq --disable-pip-version-check --editable '.[lab]' --group test
	@echo "$(CURDIR)" > $(VENV)/.here
	@touch $@

$(CHECKERS): $(INSTALLED)
	@echo "Installing the checkers into $(VENV)"
	@$(RUN)/python -m pip install -qq --disable-pip-version-check --group dev
	@touch $@
