#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SOURCE_DIR BUILD_DIR SCRATCH [quick]: runs each command that README, docs, manual pages, help
# texts and headers show, as it is written, in a copy of the tree with the library installed
# beside it; but for what how.txt lists.  One that fails fails the test.  With quick: the short ones of the
# README alone, without the model of 8 x 8.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$1 build=$2 scratch=$3
for name in $(env | sed -n 's/^\(HAL_[A-Z0-9_]*\)=.*/\1/p'); do
	[ "$name" = HAL_NPU_MODELS ] || unset "$name"
done

# ---- a tree to stand in ----------------------------------------------------------------------
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch"/{tree/build,help,tmp,bin}
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log" ||
	{ tail "$scratch/install.log"; exit 1; }
tar -c -C "$source" --exclude=./build --exclude=./.git . | tar -x -C "$scratch/tree"
ln -s "$build" "$scratch/tree/build/dev"
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$source/README.md" >"$scratch/tree/first.c"
# Programs and models that texts speak of: any will do.
for name in prog program; do
	ln -s "$build/examples/first" "$scratch/bin/$name"
done
for tool in halctl halrun npuc halbench hal-ptx halpack; do
	"$build/$tool" --help >"$scratch/help/$tool"
done
cp "$source"/data/digits/{digits.tflite,labels.txt,seven.npy} "$scratch/tree"
for name in model kws net; do
	cp "$source/data/digits/digits.tflite" "$scratch/tree/$name.tflite"
done
for name in input sample x photos; do
	cp "$source/data/digits/seven.npy" "$scratch/tree/$name.npy"
done
export PATH=$scratch/bin:$scratch/prefix/bin:$PATH
export PKG_CONFIG_PATH=$(echo "$scratch"/prefix/lib*/pkgconfig)
export LD_LIBRARY_PATH=$(echo "$scratch"/prefix/lib*)
export XDG_CACHE_HOME=$scratch/cache
export MANPATH=$scratch/prefix/share/man:

# A hald, a file that was written wrongly, and what another runtime might have computed.
export HAL_HAL_BROKER_DIR=$scratch/hald DIR=$scratch/tmp
mkdir "$HAL_HAL_BROKER_DIR"
hald --dir "$HAL_HAL_BROKER_DIR" 'npu:0?engine=fast' >"$scratch/hald.log" 2>&1 </dev/null &
hald=$!
trap 'kill $hald 2>/dev/null' EXIT
read -r -t 60 _ < <(tail -n +1 -s 0.1 --pid=$hald -f "$scratch/hald.log") ||
	{ echo "hald does not begin to serve"; exit 1; }
printf '[tenant "video"]\nclients = 4\nunits = many\n' >"$scratch/tree/tenants.conf"
for name in y tflite; do
	(cd "$scratch/tree" && halrun net.tflite x.npy -o $name.npy) >"$scratch/out" 2>&1 </dev/null
done

# ---- the commands ----------------------------------------------------------------------------
"$here/collect.sh" "$source" "$scratch"/help/* >"$scratch/collected" || exit 1
least=60
if [ "${4:-}" = quick ]; then
	cp "$scratch/collected" "$scratch/all"
	grep '^README' "$scratch/all" | grep -vE 'rows=8|halctl pro(be|file)|make (demo|check|figures|deb)' >"$scratch/collected"
	least=5
fi
cut -f2 "$scratch/collected" | awk '!seen[$0]++' >"$scratch/commands"
awk '/^#/ || !NF { next } /^\t/ { sub(/^\t/, ""); print why "\t" $0; next } { why = $0 }' \
	"$here/how.txt" >"$scratch/how"
[ "${4:-}" != quick ] || grep -F "$(sed 's/^/	/' "$scratch/commands")" "$scratch/how" >"$scratch/how.quick"
[ "${4:-}" != quick ] || mv "$scratch/how.quick" "$scratch/how"
passed=0 failed=0 left=0
fail() {
	failed=$((failed + 1))
	printf '%s\n' "FAILED: $1" "  in $(grep -F "	$1" "$scratch/collected" | cut -f1 | sort -u | tr '\n' ' ')" \
		"  $2" "$(tail -n 5 "$scratch/out")"
}
while IFS= read -r stale; do
	: >"$scratch/out"
	fail "$stale" "is in how.txt and in no text"
done < <(cut -f2 "$scratch/how" | grep -vxFf "$scratch/commands")

while IFS= read -r command; do
	why=$(awk -F'\t' -v c="$command" '$2 == c { print $1; exit }' "$scratch/how")
	if [ "$why" ] && [ "$why" != refused ]; then
		left=$((left + 1))
		echo "not run: $command ($why)"
		continue
	fi
	if [[ $command == man\ * ]] && ! command -v man >/dev/null; then
		left=$((left + 1))
		echo "not run: $command (no man here: install man-db)"
		continue
	fi
	# PREFIX and /tmp are this test's own.
	line=${command//\/tmp\//$scratch/tmp/}
	line=${line//PREFIX/$scratch/prefix}
	line=${line/#make /make -n } # building would be into the build that runs this
	(cd "$scratch/tree" && timeout 300 bash -c "$line") >"$scratch/out" 2>&1 </dev/null
	status=$?
	if [ "$why" = refused ]; then
		[ $status -eq 1 ] && [ -s "$scratch/out" ] || { fail "$command" "is not refused"; continue; }
	elif [ $status -ne 0 ]; then
		fail "$command" "exit status $status"
		continue
	fi
	passed=$((passed + 1))
	echo "ok: $command"
done <"$scratch/commands"

echo "figure cli.examples.passed $passed"
echo "figure cli.examples.failed $failed"
[ $((passed + left)) -ge $least ] || { echo "only $passed commands were found"; exit 1; }
[ $failed -eq 0 ]
