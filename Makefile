# SPDX-License-Identifier: Apache-2.0
# Thin: the build is CMake's (see CMakePresets.json); this only names the usual tasks.

JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

.NOTPARALLEL:
.PHONY: help demo check check-full check-long check-fresh check-aarch64 check-levelzero-driver
.PHONY: check-cuda-driver check-deb mutants figures policies format synth setup setup-build configure
.PHONY: build release install uninstall deb model clean

PREFIX ?= /usr/local
RELEASE ?= build/release

help:
	@echo 'make demo        several networks side by side on one NPU; table, trace and picture'
	@echo '                 MODELS=DIR: with the MLPerf Tiny networks of that folder'
	@echo 'make check       format, build, the tests of the quick tier: ten minutes at most'
	@echo 'make check-full  and all tests of up to an hour, sanitizers, valgrind, tidy: about an hour'
	@echo 'make check-long  all tests, with those that take hours, check-deb, check-fresh, check-aarch64'
	@echo '                 and mutants'
	@echo 'make check-fresh DEBIAN=trixie  make demo and make check in a fresh, minimal Debian of that'
	@echo '                 release (needs root and its package sources)'
	@echo 'make mutants     plant small errors and report those that no test notices (an hour or two);'
	@echo '                 MUTANTS="--seed 7 --count 50 --only backends/npu/*": others, fewer;'
	@echo '                 MUTANTS=--tiers: what make check notices of what make check-full does (many hours)'
	@echo 'make check-aarch64  cross-built for aarch64, the tests run under qemu-user'
	@echo 'make check-levelzero-driver  the Level Zero backend on Intel'"'"'s own driver, fetched (80 MB), without'
	@echo '                 its hardware: all but execution'
	@echo 'make check-cuda-driver  the CUDA backend beside NVIDIA'"'"'s own driver library, fetched (3 MB), without a GPU'
	@echo 'make synth       synthesise a module of the NPU (TOP=npu_vec) to gates: latches, ports of memories,'
	@echo '                 levels of logic, a table of what it takes; yosys comes from PyPI'
	@echo 'make figures     run the benchmarks, write build/figures.json'
	@echo 'make policies    compare all policies on the loads of data/loads, light and heavy: build/policies.html,'
	@echo '                 and build/policies.json; DISB=DIR: with those of DISB, too (two minutes)'
	@echo 'make format      rewrite sources that clang-format 14 would write differently'
	@echo 'make install     build it without tests and install it below PREFIX (/usr/local)'
	@echo 'make uninstall   remove what make install has installed below PREFIX (/usr/local)'
	@echo 'make deb         Debian packages, in build/deb; make check-deb: tries them in a fresh Debian'
	@echo 'make model SHAPE=8x12x4x8  one more NPU: rows x columns x slots x memory channels'
	@echo 'make build       the library, tools and tests; installs nothing'
	@echo 'make setup       install what build and tests need and this machine lacks (Debian)'

setup:
	@scripts/setup

setup-build:
	@scripts/setup build

configure:
	@scripts/stage configure cmake --preset dev

build: configure
	@scripts/stage build cmake --build --preset dev

demo: setup-build
	@scripts/stage demo-configure cmake --preset dev
	@scripts/stage demo-build cmake --build --preset dev --target hal_demo
	@build/dev/demo $(if $(MODELS),--models $(MODELS))

check: setup
	@scripts/check

check-full: setup
	@scripts/check full

DEBIAN ?= trixie
check-fresh:
	@scripts/check-fresh $(DEBIAN)

check-long: setup build check-aarch64 check-deb
	@for release in bookworm trixie noble; do scripts/stage fresh-$$release scripts/check-fresh $$release || exit 1; done
	@scripts/stage models cmake --build --preset dev --target npu_models_all
	@DEEP=1 scripts/stage tidy scripts/tidy build/dev
	@ctest --preset long --no-label-summary
	@scripts/mutants --tiers
	@scripts/mutants $(MUTANTS)

mutants: setup build
	@scripts/mutants $(MUTANTS)

release: setup-build
	@scripts/stage release-configure cmake --preset release
	@scripts/stage release-build cmake --build --preset release

install: release
	@scripts/install $(RELEASE) '$(PREFIX)'

uninstall:
	@cmake -D 'PREFIX=$(PREFIX)' -P cmake/uninstall.cmake

deb: setup release
	@rm -rf build/deb
	@scripts/stage deb scripts/make-deb --build build/debian build/deb "$${HAL_MODEL_DIR:-build/release/npu-rtl}"
	@ls build/deb/*.deb

check-deb: deb
	@scripts/stage check-deb scripts/check-deb build/deb

model: setup-build
	@test -n '$(SHAPE)' || { echo 'make model: SHAPE=ROWSxCOLSxSLOTSxCHANNELS, as 8x12x4x8' >&2; exit 2; }
	@scripts/stage model-configure cmake --preset dev -DNPU_EXTRA_SHAPES=$(SHAPE)
	@scripts/stage model cmake --build --preset dev --target npu_model_npu_$(SHAPE)
	@ls build/dev/npu-rtl/libnpu_$(SHAPE).so

check-aarch64: setup
	@scripts/check-aarch64

check-levelzero-driver: setup build
	@scripts/stage levelzero-driver scripts/check-levelzero-driver
	@tail -n 3 build/log/levelzero-driver.log

check-cuda-driver: setup build
	@scripts/stage cuda-driver scripts/check-cuda-driver

figures: setup build
	@cmake --build --preset dev --target figures

policies: setup-build
	@scripts/stage policies-configure cmake --preset dev
	@scripts/stage policies-build cmake --build --preset dev --target halbench
	@scripts/stage policies build/dev/halbench report -w 5 -H build/policies.html data/loads $(DISB)
	@ls build/policies.html build/policies.json

TOP ?= npu_core
synth: setup configure
	@cmake --build build/dev --target npu_regs >/dev/null
	@scripts/setup rtl
	@build/rtl-venv/bin/python scripts/synth --top $(TOP) build/dev

format:
	@scripts/format --fix

clean:
	rm -rf build
