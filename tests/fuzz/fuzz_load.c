/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_load.c - any bytes as a load or a table of networks of halbench: read, and its
 * arrivals are in order and in time; or refused with the file, a line and why. */
#include "fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "models.h"

static const char *const seeds[] = {
	"{\"time\": 0.5, \"tasks\": [\n"
	"{\"id\": \"a_rt\", \"client\": {\"model_name\": \"m\"}, \"load\": "
	"{\"type\": \"periodic\", \"priority\": 0, \"frequency\": 100}},\n"
	"{\"id\": \"b\", \"class\": \"latency\", \"client\": {\"model_name\": \"m\"}, "
	"\"load\": {\"type\": \"dependent\", \"prev_task_ids\": [\"a_rt\"]}},\n"
	"{\"id\": \"c_be\", \"client\": {\"model_name\": \"n\", \"x\": [null, true]}, "
	"\"load\": {\"type\": \"continuous\"}}]}",
	"{\"time\": 1, \"tasks\": [{\"id\": \"t\", \"client\": {\"model_name\": \"m\"}, "
	"\"load\": {\"type\": \"trace\", \"trace\": [1, 0.5, 2e0]}}]}",
	"{\"time\": 1, \"tasks\": [{\"id\": \"t\", \"client\": {\"model_name\": \"m\"}, "
	"\"load\": {\"type\": \"bursts\", \"frequency\": 5e3, \"on_ms\": 1, \"off_ms\": "
	"2}},{\"id\": \"u\", \"client\": {\"model_name\": \"m\"}, \"load\": {\"type\": "
	"\"diurnal\", \"frequency\": 900, \"period_s\": 0.01, \"swing\": 1}}]}",
	"{\"models\": {\"m\": {\"steps\": [[2, 1.5, 8], [1, 3, 2]]}, \"n\": "
	"{\"network\": \"n.tflite\"}}}",
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

/* "file:LINE: why" */
static void check_reason(const char *why)
{
	if (strncmp(why, "file:", 5) != 0 || !isdigit((unsigned char)why[5]) ||
	    strstr(why, ": ") == NULL)
		abort();
}

static void try_arrivals(const struct load *l)
{
	const struct load_clock c = {.window_s = 0.01, .rate = 1, .scale = 1, .seed = 1};
	char why[JSON_WHY];

	for (uint32_t i = 0; i < l->count; i++) {
		uint64_t *ns, end = load_window_ns(&c);
		uint32_t count;

		if (load_arrivals(l, i, &c, 0, &ns, &count, why) != 0)
			abort(); /* so few fit */
		for (uint32_t k = 0; k < count; k++)
			if (ns[k] >= end || (k > 0 && ns[k] < ns[k - 1]))
				abort();
		free(ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1); /* a byte too far is seen */
	char why[JSON_WHY] = "";
	struct models m = {0};
	struct load l;

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	if (load_parse(exact, size, "file", &l, why) == 0) {
		try_arrivals(&l);
		load_free(&l);
	} else {
		check_reason(why);
	}
	if (models_parse(exact, size, "file", &m, why) != 0)
		check_reason(why);
	models_free(&m);
	free(exact);
	return 0;
}
