# SPDX-License-Identifier: Apache-2.0
# The OPTIONS of hal.conf(5), from what `halctl --config /dev/null options` prints:
#   [section]
#   # help (type range; default value)
#   key = value ; source

function roff(text)
{
	gsub(/\\/, "\\e", text)
	sub(/^[.']/, "\\\\\\&&", text)
	return text
}

/^\[/ {
	if (section)
		print ".El"
	section = $0
	gsub(/[][]/, "", section)
	print ".Ss [" section "]"
	print ".Bl -tag -width Ds"
	next
}

/^# .*\(.*; default .*\)$/ {
	help = substr($0, 3)
	at = 0
	for (i = 1; i <= length(help); i++)
		if (substr(help, i, 1) == "(")
			at = i
	what = substr(help, at + 1, length(help) - at - 1)
	help = substr(help, 1, at - 2)
	next
}

/^(# )?[a-z0-9_]+ = / {
	key = $1 == "#" ? $2 : $1
	value = what
	sub(/^.*; default /, "", value)
	sub(/; default .*$/, "", what)
	type = what
	sub(/ .*/, "", type)
	range = substr(what, length(type) + 2)
	print ".It Cm " key " = Ar " type
	print roff(toupper(substr(help, 1, 1)) substr(help, 2)) "."
	if (type == "string" && value == "none")
		value = "empty"
	print (range == "any" ? "" : roff(range) "; ") "default: " roff(value) "."
	options++
}

END {
	print ".El"
	if (options < 10) {
		print "only " options " options were read" >"/dev/stderr"
		exit 1
	}
}
