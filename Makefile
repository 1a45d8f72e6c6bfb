# Trace Once. The two commands that a fresh machine needs are `make learn` and `make test`; each makes its environment first.
#
#   make learn  [OPEN=0] [PORT=9000] [HOST=0.0.0.0] [DESK=folder] [ACCELERATOR=cuda13]
#   PYTHON=/path/to/python chooses the Python of the environment

SHELL = /bin/sh
ENV = sh requirements/make_env.sh
TRACEONCE = .venv/bin/python -m traceonce

.PHONY: help env learn author pins outdated test test-latest test-gpu changed proof site slides
.DEFAULT_GOAL := help

help:
	@echo 'make learn    build the environment and open JupyterLab on your copy of the course'
	@echo '              OPEN=0 opens no browser; PORT=9000, HOST=0.0.0.0 and DESK=folder choose where'
	@echo '              ACCELERATOR=cuda13 (or cuda12) installs JAX for an NVIDIA GPU'
	@echo 'make author   open the course itself, with .py files as notebooks'
	@echo 'make env      the environment alone; KIND=dev for the one that the tests need'
	@echo 'make pins     make the lists in requirements/ again; UPGRADE=1 for the newest versions'
	@echo 'make test     run every check; STAGES="lint unit" for some of them'
	@echo 'make test-latest  the same on the newest JAX that is supported, in .venv-latest/'
	@echo 'make test-gpu  on a GPU: notebooks against the outputs stored from a CPU, and the tests that need one; DRY=1 tries it on a CPU'
	@echo '              MINUTES=8 is all the time that it may take; OUT=folder keeps the results'
	@echo 'make changed  run the notebooks on the newest JAX of latest.txt and say which printed output changed; SUMMARY=file as Markdown'
	@echo 'make outdated  list what is newer than the locked versions'
	@echo 'make site     the course with its outputs, the labs and the documentation as pages, in build/site/'
	@echo 'make slides   a deck of slides from each lesson, one file each, in build/slides/'
	@echo 'make proof    run every grader over 200 seeds; LAB=lab01_pure_functions for one'

# --- the environment ---------------------------------------------------------------------------------------------

env:
	@$(ENV) $(or $(KIND),learn)

pins:
	@$(ENV) pins

outdated:
	@$(ENV) dev
	@$(ENV) outdated

# --- JupyterLab ----------------------------------------------------------------------------------------------------

SERVE = $(if $(filter 0 no false,$(OPEN)),--no-open) $(if $(PORT),--port '$(PORT)') $(if $(HOST),--host '$(HOST)') $(if $(DESK),--desk '$(DESK)')

learn:
	@$(ENV) learn
	@exec $(TRACEONCE) learn $(SERVE)

author:
	@$(ENV) dev
	@exec $(TRACEONCE) learn --author $(SERVE)

# --- checks ----------------------------------------------------------------------------------------------------------

test:
	@$(ENV) dev
	@.venv/bin/python tests/run.py $(STAGES)

# The stored outputs, the tools and the graders, on another JAX. Formatting, types and the browser do not depend on it.
test-latest:
	@$(ENV) latest
	@.venv-latest/bin/python tests/run.py $(or $(STAGES),unit notebooks graders)

test-gpu:
	@$(ENV) dev
	@.venv/bin/python tests/gpu_run.py $(if $(filter-out 0 no false,$(DRY)),--dry) $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(OUT),--out '$(OUT)')

changed:
	@$(ENV) latest
	@.venv-latest/bin/python -m traceonce author changed $(NOTEBOOKS) $(if $(SUMMARY),--summary '$(SUMMARY)')

proof:
	@$(ENV) dev
	@$(TRACEONCE) author graders --seeds $(or $(SEEDS),200) $(if $(LAB),--lab '$(LAB)')

# --- pages and slides, made from the stored outputs -------------------------------------------------------------------

site:
	@$(ENV) site
	@.venv-site/bin/python docs/site/make_site.py

slides:
	@$(ENV) site
	@.venv-site/bin/python docs/site/make_slides.py
