/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the negative suite for the stand-in of Level Zero. */
#include "negative.h"

#include <stdlib.h>
#include <string.h>

#include <hal/levelzero.h>

#include "../conformance/conformance.h"
#include "tests/fakes/levelzero/stand_in.h"

enum { KERNELS = 3 };

struct levelzero_image {
	struct hal_levelzero_image head;
	struct hal_levelzero_kernel kernels[KERNELS];
	struct lz_stand_in_module module;
	char names[KERNELS][32];
};

static const struct levelzero_image template = {
	{HAL_LEVELZERO_MAGIC, HAL_LEVELZERO_VERSION, sizeof(struct levelzero_image), 1,
	 KERNELS, sizeof(struct hal_levelzero_kernel),
	 sizeof(struct lz_stand_in_module) + KERNELS * 32, 0},
	{
		{.name = "twice", .arg_count = 2, .arg_bytes = {64, 64}, .work = 64},
		{.name = "slow", .arg_count = 1, .arg_bytes = {64}},
		{.name = "bad", .arg_count = 1, .arg_bytes = {64}, .work = 8},
	},
	{LZ_STAND_IN_MAGIC, sizeof(struct lz_stand_in_module) + KERNELS * 32, KERNELS, 0},
	{"twice", "slow", "bad"},
};

static int levelzero_image(void **image, size_t *size)
{
	void *p = malloc(sizeof(template));

	if (!p)
		return -ENOMEM;
	memcpy(p, &template, sizeof(template));
	*image = p;
	*size = sizeof(template);
	return 0;
}

static const struct conf_pack levelzero_pack = {"levelzero", levelzero_image, free, 0};
CONF_PACK(levelzero_pack);
