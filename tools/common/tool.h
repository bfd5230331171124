/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - how commands speak of what is wrong, and how they end.
 *
 * Whoever finds an error says it, at once, and returns the exit status; whoever is given
 * a status other than 0 cleans up and passes it on, to main, which ends with tool_end. */
#ifndef HAL_TOOL_H
#define HAL_TOOL_H

/* Exit statuses; also in the help texts. */
enum {
	TOOL_FAILED = 1, /* a file, the configuration or the device is at fault */
	TOOL_USAGE = 2,  /* the command line is wrong */
};

/* "NAME: text" on standard error, NAME as the command was called. */
__attribute__((format(printf, 1, 2))) int tool_fail(const char *fmt, ...);
/* With hal_last_error() for a text. */
int tool_fail_hal(void);
/* As tool_fail, and where help is. */
__attribute__((format(printf, 1, 2))) int tool_usage(const char *fmt, ...);
/* After getopt has said what it does not know. */
int tool_usage_said(void);

/* Prints the library's version; 0. */
int tool_version(void);
/* status, or TOOL_FAILED when what was printed could not be written. */
int tool_end(int status);

#endif
