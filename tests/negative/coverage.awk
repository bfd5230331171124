# SPDX-License-Identifier: Apache-2.0
# Fails when a header documents an errno of a function and no negative case tests it.
#   negative --list | awk -f coverage.awk exempt.txt - hal.h npu.h
# An errno is documented when the comment right above the declaration names it as -ENAME
# (npu.h: above the group of declarations without a blank line in it).  Besides, whatever
# returns int must refuse a bad argument (EINVAL), and whatever takes a struct with a size
# must refuse a newer one (E2BIG).

FNR == 1 {
	file++
	comment = ""
}

# exempt.txt: FUNCTION ERRNO reason
file == 1 {
	if ($0 !~ /^#/ && NF >= 3)
		exempt[$1 " " $2] = 1
	next
}

# --list: FUNCTION ERRNO what
file == 2 {
	tested[$1 " " $2] = 1
	cases++
	next
}

function need(name, err)
{
	documented++
	if ((name " " err) in tested) {
		if ((name " " err) in exempt) {
			print name " " err ": has a case, but is exempt"
			missing++
		}
		return
	}
	if ((name " " err) in exempt)
		return
	print FILENAME ": " name " documents -" err " and has no negative case"
	missing++
}

function declared(text,    name, rest, seen)
{
	name = text
	sub(/\(.*/, "", name)
	sub(/^.*[ *]/, "", name)
	rest = comment
	while (match(rest, /-E[A-Z0-9]+/)) {
		seen[substr(rest, RSTART + 1, RLENGTH - 1)] = 1
		rest = substr(rest, RSTART + RLENGTH)
	}
	if (text ~ /^HAL_API int / && name !~ /_destroy$|_unload$/)
		seen["EINVAL"] = 1
	if (text ~ /const struct hal_[a-z]+_desc \*/ ||
	    text ~ /const struct hal_npu_[a-z]+ \*op/)
		seen["E2BIG"] = 1
	functions++
	for (rest in seen)
		need(name, rest)
}

/^\/\*/ {
	comment = ""
	in_comment = 1
}
in_comment {
	comment = comment " " $0
	if ($0 ~ /\*\//)
		in_comment = 0
	next
}
/^$/ { comment = "" }
/^HAL_API / { decl = "" ; in_decl = 1 }
in_decl {
	decl = decl " " $0
	if ($0 ~ /;/) {
		in_decl = 0
		gsub(/[ \t]+/, " ", decl)
		sub(/^ /, "", decl)
		declared(decl)
		if (FILENAME !~ /npu.h$/)
			comment = ""
	}
}

END {
	if (functions < 40 || cases < 100) {
		print "only " functions " functions and " cases " cases were seen"
		exit 1
	}
	print functions " functions, " documented " errnos, " cases " cases, " \
	      missing + 0 " missing"
	exit missing != 0
}
