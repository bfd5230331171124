/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - a core of a few lines, so that a test drives the backend's table itself; and
 * the small world that most tests do it in.
 */
#ifndef TESTS_FPGA_HOST_H
#define TESTS_FPGA_HOST_H

#include <stdbool.h>

#include <hal/backend.h>

#include "make.h"
#include "tests/fakes/fpga/stand_in.h"

/* The options that the backend asks for; what is NULL or 0 has its default. */
struct hal_bk_config {
	const char *library, *xclbin, *cards;
	int64_t clock, inflight, hang_ms;
};

extern const struct hal_host host;
extern char host_text[512]; /* of the last host.fail */

const struct hal_backend *hal_backend_fpga(const struct hal_host *h);

/* The library that LD_LIBRARY_PATH finds. */
const struct fpga_stand_in *stand_in(void);

/* An xclbin of this text; ends the test where it is wrong. */
void *make_image(const char *text, size_t *size);
/* ... in a file, whose name stays until the process ends. */
const char *make_file(const char *text);

#endif
