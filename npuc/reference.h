/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - npuc's and halrun's option --reference. */
#ifndef NPUC_REFERENCE_H
#define NPUC_REFERENCE_H

#include <string.h>

#include "npuc.h"
#include "tool.h"

#define REFERENCE_HELP                                                                   \
	"      --reference VERSION\n"                                                    \
	"                       whose bits outputs have: those of TensorFlow Lite's\n"   \
	"                       kernels since TensorFlow 2.20 (current, the default) "   \
	"or\n"                                                                           \
	"                       those of 2.14\n"

/* Set *reference by the option's argument; an exit status if it names none. */
static inline int reference_parse(const char *text, enum npuc_reference *reference)
{
	if (strcmp(text, "2.14") == 0)
		*reference = NPUC_REFERENCE_2_14;
	else if (strcmp(text, "current") == 0)
		*reference = NPUC_REFERENCE_CURRENT;
	else
		return tool_usage("--reference %s: it must be current or 2.14", text);
	return 0;
}

#endif
