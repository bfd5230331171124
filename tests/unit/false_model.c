/* SPDX-License-Identifier: Apache-2.0 */
/*
 * false_model.c - the golden model of the NPU, one of whose registers answers something
 * else: FALSE_REGISTER=ADDRESS:VALUE, both in hexadecimal.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu-rtl/npu_model.h"

static struct npu_model_api api, golden;
static unsigned int address, answer;

static uint32_t reg_read(struct npu_model *model, uint32_t at)
{
	return at == address ? answer : golden.reg_read(model, at);
}

__attribute__((visibility("default"))) const struct npu_model_api *npu_model_entry(void);

const struct npu_model_api *npu_model_entry(void)
{
	const char *text = getenv("FALSE_REGISTER");
	void *symbol, *lib = dlopen(GOLDEN, RTLD_NOW | RTLD_LOCAL);
	npu_model_entry_fn entry;

	symbol = lib ? dlsym(lib, NPU_MODEL_SYMBOL) : NULL;
	memcpy(&entry, &symbol, sizeof(entry));
	if (!entry || !text || sscanf(text, "%x:%x", &address, &answer) != 2)
		return NULL;
	golden = api = *entry();
	api.reg_read = reg_read;
	return &api;
}
