/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_target.c - any text as a target of hal_open and as an option. */
#include "fuzz.h"

#include <hal/hal.h>

#include <stdlib.h>
#include <string.h>

static const char *const seeds[] = {
	"ref:0?clock=virtual", "ref?units=4&clock=virtual", "ref", "backend.ref.units=8",
	"hal.device=ref",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	size_t size;

	if (index >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	size = strlen(seeds[index]);
	if (size > max)
		return 0;
	memcpy(data, seeds[index], size);
	return size;
}

static void open_close(const char *target, const char *const *options)
{
	struct hal_device *dev;
	int rc = hal_open(target, options, &dev);

	if (rc == 0)
		rc = hal_close(dev);
	if (rc < 0 && hal_last_error()[0] == '\0')
		abort(); /* refused without a reason */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *options[] = {text, NULL};

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	/* Real hardware and files stay out of it. */
	if (strncmp(text, "npu", 3) != 0 && !strstr(text, "config"))
		open_close(text, NULL);
	if (!strstr(text, "config") && !strstr(text, "plugin") && !strstr(text, "npu"))
		open_close("ref?clock=virtual", options);
	free(text);
	return 0;
}
