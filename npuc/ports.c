/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - inputs and outputs for people and programs to read. */
#include "ports.h"

#include <stdio.h>
#include <string.h>

void shape_text(uint32_t rank, const int32_t *dims, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "scalar");
	for (uint32_t i = 0; i < rank && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "x" : "",
					 dims[i]);
}

void port_print(const char *which, const struct npuc_port *port)
{
	char shape[NPUC_RANK * 12];

	shape_text(port->rank, port->dims, shape, sizeof(shape));
	printf("%-6s  %s  %s %s", which, port->name, npuc_type_name(port->type), shape);
	if (port->type != port->device_type)
		printf(", on the device %s", npuc_type_name(port->device_type));
	if (port->scale > 0)
		printf(", scale %.9g, zero point %d", (double)port->scale,
		       port->zero_point);
	putchar('\n');
}

static void port_json(struct out *o, const struct npuc_port *port)
{
	out_record(o, NULL);
	out_str(o, "name", port->name);
	out_str(o, "type", npuc_type_name(port->type));
	out_str(o, "device_type", npuc_type_name(port->device_type));
	out_list(o, "shape");
	for (uint32_t i = 0; i < port->rank; i++)
		out_i64(o, NULL, port->dims[i]);
	out_list_end(o);
	if (port->scale > 0) {
		out_real(o, "scale", (double)port->scale);
		out_i64(o, "zero_point", port->zero_point);
	}
	out_record_end(o);
}

void ports_json(struct out *o, const char *key, const struct npuc_port *ports,
		uint32_t count)
{
	out_list(o, key);
	for (uint32_t i = 0; i < count; i++)
		port_json(o, &ports[i]);
	out_list_end(o);
}

struct npuc_port port_of_tensor(const struct npuc_tensor *t)
{
	struct npuc_port port = {.type = t->type,
				 .device_type = t->type,
				 .rank = t->rank,
				 .count = t->count,
				 .zero_point = t->zero_point};

	snprintf(port.name, sizeof(port.name), "%.*s", NPUC_NAME - 1, t->name);
	memcpy(port.dims, t->dims, sizeof(port.dims));
	port.scale = t->scales ? t->scale : 0;
	return port;
}
