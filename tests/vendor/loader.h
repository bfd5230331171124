/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - what can be wrong before there is a device: no library, another one, an old
 * one, one that does not start, wrong variables.
 *
 * Each row of a table runs in a process of its own, because a library that has started
 * stays.  loader.c is the program; test_loader.c of tests/cuda, rocm, levelzero and fpga
 * has the table.
 */
#ifndef TESTS_VENDOR_LOADER_H
#define TESTS_VENDOR_LOADER_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hal/backend.h>

/* Any negative result. */
#define LOADER_FAILS INT_MIN

enum { LOADER_DEVICES = 8 };

/* Probe, open device 0, close it and open it again. */
struct loader_row {
	const char *name;
	const struct hal_bk_config *cfg;
	/* "NAME=value", or "NAME" to take it out of the environment.  A # stands for the
	 * numbers from 1 on: one up to nth must give the results of the row. */
	const char *set[3];
	int nth; /* 0: no # */
	/* Expected results of probe and of each open.  open 0: the error of probe, or
	 * success if probe has none or once is set: the fault is over after it.  After a
	 * negative result the host's text must have all of texts. */
	int probe, open;
	bool once;
	const char *texts[2];
	/* Expected of the devices; 0 or NULL: not checked. */
	uint32_t units[LOADER_DEVICES]; /* columns; if one is given, of all devices */
	const char *device, *bus_id;    /* names of device 0 */
	const char *second;             /* a part of the name of device 1 */
};

/* A row in which probe and each open give err; the variables follow text.  NULL: none. */
#define LOADER_REFUSED(name_, cfg_, err, text, ...)                                      \
	{                                                                                \
		.name = name_, .cfg = cfg_, .set = {__VA_ARGS__}, .probe = err,          \
		.texts = {                                                               \
			text                                                             \
		}                                                                        \
	}
/* A row in which probe alone gives -ENODEV. */
#define LOADER_ONCE(name_, cfg_, text, ...)                                              \
	{                                                                                \
		.name = name_, .cfg = cfg_, .set = {__VA_ARGS__}, .probe = -ENODEV,      \
		.once = true, .texts = {                                                 \
			text                                                             \
		}                                                                        \
	}

/* A process has one library. */
struct loader_another {
	/* Probing other fails before found is probed, and gives -EBUSY after that. */
	const struct hal_bk_config *found, *other;
	int devices;
	const char *bus_id;        /* of device 1 */
	const char *busy, *beyond; /* texts of -EBUSY; of opening device number devices */
};

struct loader_vendor {
	const struct hal_backend *(*backend)(const struct hal_host *h);
	const struct loader_row *rows;
	uint32_t row_count;
	struct loader_another another;
	const struct CMUnitTest *cases; /* of the vendor's own, or NULL */
	uint32_t case_count;
};
extern const struct loader_vendor loader_vendor;

/* Fail the test if the row does not give its results. */
void loader_check(const struct loader_row *row);
/* Run body in a process of its own, which ends with the result of body.  Return the
 * status of waitpid. */
int loader_child(int (*body)(const void *arg), const void *arg);
/* Return whether got is want and, if it is negative, the host's text has all of texts.
 * Print the difference if what is not NULL. */
bool loader_result(const char *what, int got, int want, const char *const texts[2]);

#endif
