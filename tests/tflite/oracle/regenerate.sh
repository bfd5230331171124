#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# regenerate.sh [MODELS]: asks TensorFlow Lite's reference kernels again and rewrites
# data/tflite.  MODELS: folder of the MLPerf Tiny networks; without it nets.sums stays.
# $PYTHON and $PYTHON_CURRENT: interpreters that have requirements.txt and requirements_current.txt;
# else a venv is made of each for the run.  The second one runs ops_current.py, and all packs and
# networks again: current.gz and nets_current.sums have what differs.
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
	for with in "$python" "$current"; do
		suffix=$([ "$with" = "$python" ] || echo _current)
		[ -z "${1:-}" ] ||
			MALLOC_PERTURB_=$fill "$with" "$here/nets.py" "$1" "$scratch/nets$suffix.$fill"
	done
done
for pack in "$here"/ops*.py; do
	name=$(basename "$pack" .py)
	cmp "$scratch/$name.85" "$scratch/$name.170"
	cp "$scratch/$name.85" "$data/$name.pack.gz"
done
for fill in 85 170; do
	MALLOC_PERTURB_=$fill "$current" "$here/current.py" "$scratch/current.$fill" "$data"/ops*.pack.gz
done
cmp "$scratch/current.85" "$scratch/current.170"
cp "$scratch/current.85" "$data/current.gz"
if [ -n "${1:-}" ]; then
	for name in nets nets_current; do
		cmp "$scratch/$name.85" "$scratch/$name.170"
		cp "$scratch/$name.85" "$data/$name.sums"
	done
fi
