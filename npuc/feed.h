/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - what goes into halrun's inputs, and where its outputs go.  Functions return
 * 0, or TOOL_FAILED once they have said what is wrong. */
#ifndef NPUC_FEED_H
#define NPUC_FEED_H

#include <stdio.h>

#include "convert.h"
#include "npuc.h"

struct feed {
	char **inputs; /* "FILE", or "NAME=FILE" */
	uint32_t input_count;
	char **outputs; /* likewise; a FILE alone takes all of them */
	uint32_t output_count;
	char **expected; /* likewise; a FILE alone is that of the only output */
	uint32_t expected_count;
	double tolerance;
	uint64_t seed; /* for inputs without a file; 0: there may be none */
	struct convert convert;
	bool dequantize; /* outputs are written as float32 */
};

/* Inputs in memory, of the model's types. */
struct fed {
	uint32_t count; /* of inputs */
	uint64_t images;
	uint64_t state; /* of random numbers */
	struct fed_input {
		uint8_t *data;   /* NULL: random */
		uint64_t images; /* 1: the same for all */
	} * inputs;
};

/* Outputs as the device has them, image after image. */
struct outputs {
	uint64_t images;
	uint8_t **data;
};

/* Read every file; then each input has one, or there is a seed. */
int feed_load(const struct feed *f, const struct npuc_program *p, struct fed *in);
/* Set every input of the program for an image; images go in order. */
int feed_write(struct fed *in, const struct npuc_program *p, struct npuc_run *run,
	       uint64_t image);
void feed_free(struct fed *in);
/* All three, of one image. */
int feed_inputs(const struct feed *f, const struct npuc_program *p, struct npuc_run *run);
/* Before anything runs: the names are right, and nothing is asked for twice. */
int feed_check_outputs(const struct feed *f, const struct npuc_program *p);
int feed_outputs(const struct feed *f, const struct npuc_program *p,
		 const struct outputs *out);
/* Some output goes to standard output. */
bool feed_takes_stdout(const struct feed *f);

/* A whole file, or standard input for -; NULL once it has said what is wrong. */
uint8_t *feed_read_file(const char *path, size_t *size);
/* The output that "NAME=FILE", or "FILE" where there is but one, names. */
int feed_find_output(const char *word, const struct npuc_program *p, uint32_t *port,
		     const char **file);

#endif
