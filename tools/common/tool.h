/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - how commands speak of what is wrong, and how they end.
 *
 * Whoever finds an error says it, at once, and returns TOOL_FAILED or TOOL_USAGE; whoever
 * is given one cleans up and passes it on, to main, which ends with tool_end. */
#ifndef HAL_TOOL_H
#define HAL_TOOL_H

#include <stddef.h>

/* The exit statuses are 1 and 2; also in the help texts. */
enum {
	TOOL_FAILED = -1, /* a file, the configuration or the device is at fault */
	TOOL_USAGE = -2,  /* the command line is wrong */
};

/* "NAME: text" on standard error, NAME as the command was called. */
__attribute__((format(printf, 1, 2))) int tool_fail(const char *fmt, ...);
/* The same of what is no error. */
__attribute__((format(printf, 1, 2))) void tool_note(const char *fmt, ...);
/* From here on the first error is kept there and none is said, until tool_keep(NULL, 0);
 * what is kept has no name of a command.  For one that goes on after an error. */
void tool_keep(char *why, size_t size);
/* With hal_last_error() for a text. */
int tool_fail_hal(void);
/* As tool_fail, and where help is. */
__attribute__((format(printf, 1, 2))) int tool_usage(const char *fmt, ...);
/* After getopt has said what it does not know. */
int tool_usage_said(void);

/* Prints the library's version; 0. */
int tool_version(void);
/* The exit status for what a command returned; failed, too, when what it has printed
 * could not be written. */
int tool_end(int rc);

#endif
