/* SPDX-License-Identifier: Apache-2.0 */
/* Images for the stand-in driver: PTX whose kernels do nothing, which ptxas takes. */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/cuda.h>

#define PTX_BYTES 8192u

static size_t say_kernel(const char *text, struct hal_cuda_kernel *k, char *ptx,
			 size_t room)
{
	const size_t n = strcspn(text, ":");
	const char *p = text[n] ? text + n + 1 : "";
	size_t at;

	memcpy(k->name, text, n);
	at = (size_t)snprintf(ptx, room, ".visible .entry %s(", k->name);
	for (; *p && *p != '@'; p++) {
		const uint32_t bytes = *p == 'm' ? 0 : (uint32_t)(*p - '0');

		at += (size_t)snprintf(ptx + at, room - at, "%s.param .u%u p%u",
				       k->arg_count ? ", " : "", 8 * (bytes ? bytes : 8),
				       k->arg_count);
		k->scalar_bytes[k->arg_count++] = bytes;
	}
	at += (size_t)snprintf(ptx + at, room - at, ")\n{\n");
	if (*p == '@')
		at += (size_t)snprintf(ptx + at, room - at,
				       "\t.local .align 8 .b8 stack[%s];\n", p + 1);
	return at + (size_t)snprintf(ptx + at, room - at, "\tret;\n}\n");
}

void *make_cuda_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		      size_t *size)
{
	const size_t table =
		sizeof(struct hal_cuda_image) + count * sizeof(struct hal_cuda_kernel);
	struct hal_cuda_image *head = calloc(1, table + PTX_BYTES);
	struct hal_cuda_kernel *k = (void *)(head + 1);
	char *ptx = (char *)head + table;
	uint32_t i;
	size_t at;

	if (!head)
		abort();
	at = (size_t)snprintf(ptx, PTX_BYTES,
			      ".version 7.0\n.target sm_52\n.address_size 64\n");
	for (i = 0; i < count; i++) {
		k[i].block[0] = group_size;
		at += say_kernel(kernels[i], &k[i], ptx + at, PTX_BYTES - at);
	}
	*size = table + at + 1;
	*head = (struct hal_cuda_image){.magic = HAL_CUDA_MAGIC,
					.version = HAL_CUDA_VERSION,
					.bytes = (uint32_t)*size,
					.format = HAL_CUDA_PTX,
					.kernel_count = count,
					.kernel_size = sizeof(*k),
					.module_bytes = (uint32_t)(at + 1)};
	return head;
}
