/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that has nothing at all, and is not even a table where ODD says so. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <hal/backend.h>

const struct hal_backend *hal_backend_entry(const struct hal_host *host);

static const size_t head = offsetof(struct hal_backend, cold);

static struct hal_backend table = {
	.abi = HAL_BACKEND_ABI,
	.name = "odd",
};

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *host)
{
	const char *odd = getenv("ODD");

	(void)host;
	table.size = (uint32_t)head;
	if (odd == NULL)
		return &table;
	if (strcmp(odd, "head") == 0) {
		table.size--;
	} else if (strcmp(odd, "cold") == 0) {
		table.cold_size = 8;
		table.size = (uint32_t)head + 7;
	} else if (strcmp(odd, "hot") == 0) {
		table.cold_size = 8;
		table.hot_size = 8;
		table.size = (uint32_t)head + 15;
	} else if (strcmp(odd, "options") == 0) {
		table.option_count = 1;
	} else if (strcmp(odd, "nameless") == 0) {
		table.name = NULL;
	} else {
		table.name = odd;
	}
	return &table;
}
