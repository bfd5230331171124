/* SPDX-License-Identifier: Apache-2.0 */
/* Backends out of the tree that must be refused, one each by -DWRONG_...; by number. */
#include <errno.h>
#include <stddef.h>

#include <hal/backend.h>

#define WRONG_ABI     1
#define WRONG_SIZE    2
#define WRONG_NAME    3
#define WRONG_SAME    4
#define WRONG_REFUSES 5

const struct hal_backend *hal_backend_entry(const struct hal_host *host);

static const struct hal_backend table = {
	.size = WRONG == WRONG_SIZE ? 16 : sizeof(struct hal_backend),
	.abi = WRONG == WRONG_ABI ? 43 : HAL_BACKEND_ABI,
	.name = WRONG == WRONG_NAME   ? "a:b"
		: WRONG == WRONG_SAME ? "ref"
				      : "wrong",
	.summary = "refused",
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
};

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *host)
{
	if (WRONG == WRONG_REFUSES) {
		host->fail(EPROTO, "plugin: not today");
		return NULL;
	}
	return &table;
}
