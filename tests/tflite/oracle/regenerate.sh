#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# regenerate.sh [MODELS]: asks TensorFlow Lite's reference kernels again and rewrites
# data/tflite.  MODELS: folder of the MLPerf Tiny networks; without it nets.sums stays.
# $PYTHON and $PYTHON_CURRENT: interpreters that have requirements.txt and, for ops_current.py,
# requirements_current.txt; else a venv is made of each for the run.
#
# Everything is made twice, with the heap's fresh memory filled differently: a result that
# depends on memory nobody wrote is an error, not data.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../../data/tflite
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python=${PYTHON:-}
if [ -z "$python" ]; then
	python3 -m venv "$scratch/venv"
	"$scratch/venv/bin/pip" install --quiet -r "$here/requirements.txt"
	python=$scratch/venv/bin/python
fi
current=${PYTHON_CURRENT:-}
if [ -z "$current" ]; then
	python3 -m venv "$scratch/current"
	"$scratch/current/bin/pip" install --quiet -r "$here/requirements_current.txt"
	current=$scratch/current/bin/python
fi
export PYTHONDONTWRITEBYTECODE=1

for fill in 85 170; do
	for pack in "$here"/ops*.py; do
		name=$(basename "$pack" .py)
		with=$python
		[ "$name" != ops_current ] || with=$current
		MALLOC_PERTURB_=$fill "$with" "$pack" "$scratch/$name.$fill"
	done
	[ -z "${1:-}" ] ||
		MALLOC_PERTURB_=$fill "$python" "$here/nets.py" "$1" "$scratch/nets.$fill"
done
for pack in "$here"/ops*.py; do
	name=$(basename "$pack" .py)
	cmp "$scratch/$name.85" "$scratch/$name.170"
	cp "$scratch/$name.85" "$data/$name.pack.gz"
done
if [ -n "${1:-}" ]; then
	cmp "$scratch/nets.85" "$scratch/nets.170"
	cp "$scratch/nets.85" "$data/nets.sums"
fi
