/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - elements of files that are not of their input's type. */
#include "convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

int convert_parse(const char *option, const char *text, float *out, uint32_t *count)
{
	const char *at = text;
	bool positive = strcmp(option, "deviation") == 0, more = true;

	for (*count = 0; more; ++*count) {
		char *end;

		if (*count == CONVERT_CHANNELS)
			return tool_usage("--%s %s: more than %u numbers", option, text,
					  CONVERT_CHANNELS);
		out[*count] = strtof(at, &end);
		if (end == at || (*end && *end != ',') || !isfinite(out[*count]) ||
		    (positive && !(out[*count] > 0)))
			return tool_usage("--%s %s: it must be %snumbers with commas "
					  "between them",
					  option, text, positive ? "positive " : "");
		more = *end == ',';
		at = end + 1;
	}
	return 0;
}

static bool is_real(enum npuc_type type)
{
	return type == NPUC_FLOAT32 || type == NPUC_FLOAT64 || type == NPUC_UINT8;
}

bool convert_needed(const struct convert *how, enum npuc_type from,
		    const struct npuc_port *port)
{
	return from != port->type || (is_real(from) && (how->means || how->deviations));
}

int64_t convert_number(const uint8_t *data, uint64_t i, enum npuc_type type)
{
	int64_t wide;
	int32_t whole;

	switch (type) {
	case NPUC_INT64:
		memcpy(&wide, data + i * sizeof(wide), sizeof(wide));
		return wide;
	case NPUC_INT32:
		memcpy(&whole, data + i * sizeof(whole), sizeof(whole));
		return whole;
	case NPUC_INT16:
		return (int16_t)(data[2 * i] | data[2 * i + 1] << 8);
	case NPUC_UINT8:
		return data[i];
	default:
		return (int8_t)data[i];
	}
}

double convert_real(const struct npuc_port *port, int64_t number)
{
	return port->scale > 0 ? (double)port->scale * (double)(number - port->zero_point)
			       : (double)number;
}

static float real_at(const uint8_t *data, uint64_t i, enum npuc_type type)
{
	double wide;
	float x;

	switch (type) {
	case NPUC_FLOAT64:
		memcpy(&wide, data + i * sizeof(wide), sizeof(wide));
		return (float)wide;
	case NPUC_FLOAT32:
		memcpy(&x, data + i * sizeof(x), sizeof(x));
		return x;
	default:
		return data[i];
	}
}

static float normalized(const struct convert *how, float x, uint32_t channel)
{
	if (how->means)
		x -= how->mean[how->means > 1 ? channel : 0];
	if (how->deviations)
		x /= how->deviation[how->deviations > 1 ? channel : 0];
	return x;
}

static int check(const struct convert *how, const char *name, enum npuc_type from,
		 const struct npuc_port *port, uint32_t channels)
{
	uint32_t given = how->means > 1 ? how->means : how->deviations;

	if (!is_real(from))
		return tool_fail("%s: its elements are %s, but input '%s' takes %s, or "
				 "float32, float64 and uint8, which are quantized",
				 name, npuc_type_name(from), port->name,
				 npuc_type_name(port->type));
	if (port->type != NPUC_FLOAT32 && !(port->scale > 0))
		return tool_fail("%s: its elements are %s, but input '%s' takes %s, "
				 "which has no scale",
				 name, npuc_type_name(from), port->name,
				 npuc_type_name(port->type));
	if ((how->means > 1 && how->means != channels) ||
	    (how->deviations > 1 && how->deviations != channels))
		return tool_fail("%s: %u means or deviations are given, but input '%s' "
				 "has %u channels",
				 name, given, port->name, channels);
	return 0;
}

int convert_elements(const struct convert *how, const char *name, enum npuc_type from,
		     const uint8_t *data, uint64_t count, const struct npuc_port *port,
		     uint8_t *to)
{
	uint32_t channels = port->rank ? (uint32_t)port->dims[port->rank - 1] : 1;
	uint32_t width = npuc_type_bytes(port->type);
	bool wide = port->type == NPUC_INT16;
	float low = wide ? -32768.0f : port->type == NPUC_UINT8 ? 0.0f : -128.0f;
	float high = low + (wide ? 65535.0f : 255.0f);
	uint64_t clamped = 0;

	if (check(how, name, from, port, channels))
		return TOOL_FAILED;
	for (uint64_t i = 0; i < count; i++) {
		float x =
			normalized(how, real_at(data, i, from), (uint32_t)(i % channels));
		int32_t q;

		if (port->type == NPUC_FLOAT32) {
			memcpy(to + i * width, &x, sizeof(x));
			continue;
		}
		x = roundf(x / port->scale) + (float)port->zero_point;
		clamped += !(x >= low && x <= high);
		q = (int32_t)(x >= high ? high : x > low ? x : low);
		for (uint32_t k = 0; k < width; k++)
			to[i * width + k] = (uint8_t)((uint32_t)q >> 8 * k);
	}
	if (port->type != NPUC_FLOAT32)
		fprintf(stderr,
			"%s: %s quantized to %s with scale %.9g and zero point %d; "
			"%" PRIu64 " of %" PRIu64 " elements were clamped\n",
			name, npuc_type_name(from), npuc_type_name(port->type),
			(double)port->scale, port->zero_point, clamped, count);
	return 0;
}
