# SPDX-License-Identifier: Apache-2.0
# Fails when a header documents an errno of a function and no negative case tests it.
#   { awk -f ../man/headers.awk hal.h npu.h; negative --list; } | awk -f coverage.awk exempt.txt -
# Besides what the comments document, every function that returns int and destroys nothing must
# refuse a bad argument (EINVAL).

# exempt.txt: FUNCTION ERRNO reason
NR == FNR {
	if ($0 !~ /^#/ && NF >= 3)
		exempt[$1 " " $2] = 1
	next
}

$1 == "documents" {
	need[$2 " " $3] = 1
	next
}

$1 == "declared" {
	functions++
	if ($3 ~ /^int/ && $2 !~ /_destroy$|_unload$/)
		need[$2 " EINVAL"] = 1
	next
}

# --list: FUNCTION ERRNO what
{
	tested[$1 " " $2] = 1
	cases++
}

END {
	for (what in need) {
		documented++
		split(what, of, " ")
		if ((what in tested) && (what in exempt)) {
			print what ": has a case, but is exempt"
			missing++
		} else if (!(what in tested) && !(what in exempt)) {
			print of[1] " documents -" of[2] " and has no negative case"
			missing++
		}
	}
	for (what in exempt)
		if (!(what in need)) {
			print what ": is exempt, but no header documents it"
			missing++
		}
	if (functions < 40 || cases < 100) {
		print "only " functions " functions and " cases " cases were seen"
		exit 1
	}
	print functions " functions, " documented " errnos, " cases " cases, " \
	      missing + 0 " missing"
	exit missing != 0
}
