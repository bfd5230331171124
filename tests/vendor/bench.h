/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what bench.c needs to know of a vendor: bench_submit.c of tests/cuda, rocm,
 * levelzero and fpga.
 *
 * bench_submit N [MODE]: launch N times, through the backend's table or as MODE says.
 * MODE bare makes the same calls of the vendor's library by hand, in a function
 * bare_submit.  overhead.sh counts, under callgrind, what the backend's submit and
 * bare_submit cost without the library.
 */
#ifndef TESTS_VENDOR_BENCH_H
#define TESTS_VENDOR_BENCH_H

#include <hal/backend.h>

/* An open device, an idle queue, and a launch of work(mem, 100 ns). */
struct bench_rig {
	const struct hal_backend *b;
	void *dev, *part, *queue, *prog, *kernel, *mem;
	struct hal_bk_arg args[2];
	struct hal_bk_cmd launch;
};

struct bench_mode {
	const char *name; /* NULL: the end of the modes */
	const struct hal_bk_config *cfg;
	void (*run)(struct bench_rig *r, long n);
};

struct bench_vendor {
	const struct hal_backend *(*backend)(const struct hal_host *h);
	/* Return a program whose first kernel is work; the caller frees it. */
	void *(*image)(size_t *size);
	uint64_t color_mask; /* of the partition and its buffer; 0: no colours */
	const struct bench_mode *modes;
	const char *name;        /* of its figures */
	uint64_t (*calls)(void); /* of the vendor's library so far */
};
extern const struct bench_vendor bench_vendor;

/* Run of mode "": launch through the backend's table, and wait for each launch. */
void bench_launch(struct bench_rig *r, long n);
/* Run of mode "calls": launch N times as the engine does, which keeps the device
 * supplied, and N times one after another; print the calls of the library for each
 * launch. */
void bench_calls(struct bench_rig *r, long n);
/* Return err if it is not negative; otherwise print the host's text and exit. */
int bench_check(int err);
/* Exit if result, of a call of the vendor's library, is not 0. */
void bench_result(uint32_t result);

#endif
