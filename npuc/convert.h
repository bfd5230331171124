/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h - elements of files that are not of their input's type. */
#ifndef NPUC_CONVERT_H
#define NPUC_CONVERT_H

#include "npuc.h"

#define CONVERT_CHANNELS 16u

/* A real number is (x - mean) / deviation, by channel: the last dimension.  One of either
 * is for all channels; none are 0 and 1. */
struct convert {
	uint32_t means, deviations;
	float mean[CONVERT_CHANNELS], deviation[CONVERT_CHANNELS];
};

/* Read "N[,N...]"; 0, or TOOL_USAGE once it has said what is wrong. */
int convert_parse(const char *option, const char *text, float *out, uint32_t *count);
/* Whether convert_elements is wanted: the types differ, or there is a mean or deviation
 * of float or uint8 elements; others are quantized already. */
bool convert_needed(const struct convert *how, enum npuc_type from,
		    const struct npuc_port *port);
/* Convert count elements of type from at data to those of the port's type, and say on
 * standard error how they were quantized.  name: the file's.  0, or TOOL_FAILED once it
 * has said what is wrong. */
int convert_elements(const struct convert *how, const char *name, enum npuc_type from,
		     const uint8_t *data, uint64_t count, const struct npuc_port *port,
		     uint8_t *to);

/* A number as the device has it, and the real number that it stands for. */
int64_t convert_number(const uint8_t *data, uint64_t i, enum npuc_type type);
double convert_real(const struct npuc_port *port, int64_t number);

#endif
