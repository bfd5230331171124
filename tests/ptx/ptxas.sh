#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ptxas.sh SOURCE_DIR HAL_PTX [quick|all [FOLDER FIGURES]]: NVIDIA's assembler takes the kernels as they are rewritten,
# for each architecture from 7.5 on that it knows (quick: one), and says how many registers more
# they need: of those that can be both, the share that needs none, the share that needs less than
# 5 %, the share that needs fewer than 5, and the mean, over three architectures.  Of the kernels of another FOLDER it prints no more than
# how many files were taken and refused, as FIGURES.  It is looked for in PATH and the toolkit's folder; else
# scripts/setup ptx fetches it.  Exit status 77: there is none.
set -euo pipefail
source=$1 hal_ptx=$2 quick=${3:-all} folder=${4:-$1/tests/ptx/kernels} figures=${5:-ptx.ptxas}
[ $quick != all ] || quick=
ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null || true)
if [ -z "$ptxas" ]; then
	rc=0
	said=$("$source/scripts/setup" ptx) || rc=$?
	[ $rc -eq 0 ] || { echo "no ptxas: $said"; exit 77; }
	ptxas=$(ls "$source"/build/ptx-venv/lib/python*/site-packages/nvidia/cu*/bin/ptxas)
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
known=$("$ptxas" --help | grep -oE "'sm_[0-9]+'" | tr -d "'sm_" | sort -un)
archs=$(awk '$1 >= 75' <<<"$known")
measured="75 90 120"
[ -z "$quick" ] || archs=90 measured=90
[ -n "$archs" ] || { echo "$ptxas knows no architecture from 7.5 on"; exit 1; }

bad=0 taken=0
# assemble ARCH FILE: lines "KERNEL REGISTERS"
assemble() {
	if ! "$ptxas" -v "-arch=sm_$1" -o "$scratch/out.cubin" "$2" 2>"$scratch/said"; then
		head -n 5 "$scratch/said" >&2
		return 1
	fi
	sed -nE "s/.*Compiling entry function '([^']+)'.*/\1/p; s/.*Used ([0-9]+) registers.*/\1/p" \
		"$scratch/said" | paste - -
}

for file in "$folder"/*.ptx; do
	name=$(basename "$file" .ptx)
	least=$(sed -nE 's/^\.target sm_([0-9]+).*/\1/p' "$file")
	cp "$file" "$scratch/$name.plain.ptx"
	for way in entry loop bounds; do
		"$hal_ptx" -k -p "$way" -o "$scratch/$name.$way.ptx" "$file" 2>/dev/null
	done
	"$hal_ptx" -k -p bounds -p entry -o "$scratch/$name.both.ptx" "$file" 2>/dev/null
	maps=$source/tests/ptx/maps
	for map in pieces:1 sides:1; do
		"$hal_ptx" -k -p color -m "$maps/${map%:*}.map" -c "${map#*:}" \
			-o "$scratch/$name.${map%:*}.ptx" "$file" 2>/dev/null
	done
	"$hal_ptx" -k -p bounds -p color -p entry -m "$maps/sum.map" -c 0-1 -o "$scratch/$name.all.ptx" \
		"$file" 2>/dev/null
	for way in plain entry loop bounds both pieces sides all; do
		for arch in $archs; do
			[ "$arch" -ge "$least" ] || continue
			if assemble "$arch" "$scratch/$name.$way.ptx" >"$scratch/registers"; then
				taken=$((taken + 1))
			else
				echo "$name, $way, sm_$arch: not taken"
				bad=$((bad + 1))
			fi
			if grep -qw "$arch" <<<"$measured"; then
				sed "s/^/$way $arch /" "$scratch/registers" >>"$scratch/all"
			fi
		done
	done
done

echo "figure $figures.taken $taken"
echo "figure $figures.refused $bad"
[ $# -lt 4 ] || exit $((bad > 0))

# "WAY ARCH KERNEL REGISTERS", with what the kernel as it is takes there.
awk -v quick="$quick" '
	$1 == "plain" { plain[$2, $3] = $4; next }
	{ way[NR] = $1; key[NR] = $2 SUBSEP $3; used[NR] = $4 }
	END {
		for (i in way) {
			n[way[i]]++
			more = used[i] - plain[key[i]]
			none[way[i]] += more <= 0
			under[way[i]] += more < 0.05 * plain[key[i]]
			fewer[way[i]] += more < 5
			sum[way[i]] += more
		}
		split("entry bounds pieces sides", passes)
		split("preempt bounds color.pieces color.sides", names)
		for (j = 1; j <= 4; j++) {
			p = passes[j]
			printf "figure ptx.%s.extra_registers.none_share %.3f\n", names[j], none[p] / n[p]
			printf "figure ptx.%s.extra_registers.under5_share %.3f\n", names[j], under[p] / n[p]
			printf "figure ptx.%s.extra_registers.fewer_than_5_share %.3f\n", names[j], fewer[p] / n[p]
			printf "figure ptx.%s.extra_registers.mean %.2f\n", names[j], sum[p] / n[p]
		}
	}' "$scratch/all"
[ "$bad" -eq 0 ]
