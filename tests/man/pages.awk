# SPDX-License-Identifier: Apache-2.0
# What the manual pages say, a fact a line; links (.so) are followed by who reads this.
#   awk -f pages.awk FILE...
#
#   link FILE TARGET             the file is only a link
#   name NAME FILE               NAME section
#   section FILE SECTION         in the order of the page; blanks are underlines
#   proto FUNCTION PROTOTYPE     SYNOPSIS, without blanks
#   errno FUNCTION ERRNO FILE    ERRORS; below a subsection, of the functions it names
#   refer FILE NAME SECTION      .Xr

FNR == 1 {
	section = ""
	sub_names = ""
	names = ""
	type = ""
}

function tell_proto(    text)
{
	text = type args ")"
	gsub(/[ \t"]/, "", text)
	print "proto " fn " " text
	fn = ""
}

/^\.so / {
	print "link " FILENAME " " $2
	next
}

/^\.Sh / {
	section = substr($0, 5)
	gsub(/ /, "_", section)
	print "section " FILENAME " " section
	sub_names = ""
	next
}

/^\.Ss / {
	sub_names = substr($0, 5)
	gsub(/,/, " ", sub_names)
	next
}

/^\.Xr / { print "refer " FILENAME " " $2 " " $3 }

section == "NAME" && /^\.Nm / {
	print "name " $2 " " FILENAME
	names = names " " $2
}

section == "SYNOPSIS" && /^\.Ft / { type = substr($0, 5) }
section == "SYNOPSIS" && /^\.Fn / {
	fn = $2
	args = fn "(" substr($0, 5 + length(fn))
	tell_proto()
}
section == "SYNOPSIS" && /^\.Fo / {
	fn = $2
	args = fn "("
	comma = ""
}
section == "SYNOPSIS" && /^\.Fa / {
	args = args comma substr($0, 5)
	comma = ","
}
section == "SYNOPSIS" && /^\.Fc/ { tell_proto() }

section == "ERRORS" && /^\.It Bq Er / {
	count = split(sub_names != "" ? sub_names : names, of, " ")
	for (i = 1; i <= count; i++)
		print "errno " of[i] " " $4 " " FILENAME
}
