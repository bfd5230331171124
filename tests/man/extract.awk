# SPDX-License-Identifier: Apache-2.0
# The example of a manual page, or with -v want=output what it says that it prints.

BEGIN { want = want == "" ? "example" : want }
/^\.\\" (example|output)/ {
	mark = $2 == want
	next
}
mark && /^\.Bd -literal/ {
	on = 1
	mark = 0
	next
}
/^\.Ed/ { on = 0 }
on {
	line = $0
	sub(/^\\&/, "", line)
	gsub(/\\e/, "\\", line)
	print line
}
