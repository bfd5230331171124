# SPDX-License-Identifier: Apache-2.0
# What the public headers declare, a fact a line:  awk -f headers.awk hal.h npu.h
#
#   declared FUNCTION PROTOTYPE  exported and inline functions, without blanks
#   documents FUNCTION ERRNO     named in the comment above: as "ERRNO: why", or by a word of
#                                hal.h's opening comment, from "Errors:" to "Threads:"; in a
#                                comment without "Threads:" as -ERRNO.  In npu.h a comment
#                                counts until the next blank line.

BEGIN {
	means["handle"] = "EINVAL EPERM"
	means["lost"] = "ENODEV"
	means["memory"] = "ENOMEM"
	means["desc"] = "E2BIG EINVAL"
}

# Add the errnos in text, which has one or more of them or a word for them, to seen.
function add(text, seen,    of, i)
{
	for (i = split(text, of, /[ ,;:]+/); i > 0; i--)
		if (of[i] != "")
			seen[of[i]] = 1
}

# Add the errnos of a comment's Errors to seen.
function add_errors(text, seen,    words, of, i)
{
	sub(/ Threads:.*/, "", text)
	if (!sub(/.* Errors:/, "", text))
		return
	words = text
	sub(/ E[A-Z0-9]+(, E[A-Z0-9]+)*: .*/, "", words)
	sub(/\..*/, "", words)
	for (i = split(words, of, /[ ;]+/); i > 0; i--)
		if (of[i] in means)
			add(means[of[i]], seen)
	while (match(text, / E[A-Z0-9]+(, E[A-Z0-9]+)*: /)) {
		add(substr(text, RSTART, RLENGTH), seen)
		text = substr(text, RSTART + RLENGTH)
	}
}

function declaration(text,    name, rest, seen, err)
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
	gsub(/[ \t]+\* /, " ", rest)
	if (rest ~ / Threads: /)
		add_errors(rest, seen)
	else
		while (match(rest, /-E[A-Z0-9]+/)) {
			seen[substr(rest, RSTART + 1, RLENGTH - 1)] = 1
			rest = substr(rest, RSTART + RLENGTH)
		}
	if (text ~ /const struct hal_[a-z]+_desc \*/ || text ~ /const struct hal_npu_[a-z]+ \*op/)
		seen["E2BIG"] = 1
	for (err in seen)
		if (is_api)
			print "documents " name " " err
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
