/* SPDX-License-Identifier: Apache-2.0 */
/* bad_call LOADER: one call that only the validation layer refuses, so that a run that
 * counts its messages can be seen to count. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *init = handle ? dlsym(handle, "zeInit") : NULL;
	void *close_list = handle ? dlsym(handle, "zeCommandListClose") : NULL;
	uint32_t (*ze_init)(uint32_t);
	uint32_t (*ze_close)(void *);
	uint32_t r;

	if (!init || !close_list)
		return 2;
	memcpy(&ze_init, &init, sizeof(init));
	memcpy(&ze_close, &close_list, sizeof(close_list));
	r = ze_init(0);
	if (r) {
		printf("zeInit answers 0x%x\n", r);
		return 2;
	}
	printf("zeCommandListClose(NULL) answers 0x%x\n", ze_close(NULL));
	return 0;
}
