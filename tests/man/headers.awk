# SPDX-License-Identifier: Apache-2.0
# What the public headers declare, a fact a line:  awk -f headers.awk hal.h npu.h
#
#   declared FUNCTION PROTOTYPE  exported and inline functions, without blanks
#   documents FUNCTION ERRNO     named as -ENAME in the comment above ("-EBUSY never" is not);
#                                in npu.h a comment counts until the next blank line

function declaration(text,    name, rest, err)
{
	gsub(/[ \t]+/, " ", text)
	sub(/^(HAL_API|HAL_INLINE) /, "", text)
	sub(/\).*/, ")", text)
	name = text
	sub(/\(.*/, "", name)
	sub(/^.*[ *]/, "", name)
	if (name ~ /_$/)
		return
	rest = comment
	while (match(rest, /-E[A-Z0-9]+( never)?/)) {
		err = substr(rest, RSTART + 1, RLENGTH - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if (err !~ / never$/ && is_api)
			print "documents " name " " err
	}
	if (text ~ /const struct hal_[a-z]+_desc \*/ || text ~ /const struct hal_npu_[a-z]+ \*op/)
		print "documents " name " E2BIG"
	gsub(/ /, "", text)
	print "declared " name " " text
}

FNR == 1 { comment = "" }
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
{ sub(/[ \t]*\/\*.*\*\/[ \t]*$/, "") }
/^(HAL_API|HAL_INLINE) / {
	is_api = /^HAL_API/
	text = ""
	in_text = 1
}
in_text {
	text = text " " $0
	if ($0 ~ /\)[ ;]*$/) {
		in_text = 0
		sub(/^ /, "", text)
		declaration(text)
		if (FILENAME !~ /npu.h$/)
			comment = ""
	}
}
