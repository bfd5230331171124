/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - inputs and outputs for people and programs to read. */
#ifndef NPUC_PORTS_H
#define NPUC_PORTS_H

#include "npuc.h"
#include "out.h"

/* "1x8x8x1", or "scalar". */
void shape_text(uint32_t rank, const int32_t *dims, char *text, size_t size);
/* A line: input or output, name, type, shape, scale, zero point. */
void port_print(const char *which, const struct npuc_port *port);
void ports_json(struct out *o, const char *key, const struct npuc_port *ports,
		uint32_t count);
/* A tensor of a model as a port that would have it; without quantization .scale is 0. */
struct npuc_port port_of_tensor(const struct npuc_tensor *tensor);

#endif
