/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_npuc.c - a program outside this tree: the installed network, by libnpuc. */
#include <npuc.h>

#include <stdio.h>
#include <string.h>

static char why[NPUC_WHY];

static int fail(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	return 1;
}

/* The digit: the last 64 bytes of a .npy file are the image. */
static int classify(struct npuc_run *run, const char *npy, int *digit)
{
	char image[64], logits[10];
	struct hal_point done;
	FILE *f = fopen(npy, "rb");

	if (!f || fseek(f, -64, SEEK_END) || fread(image, 1, 64, f) != 64)
		return fail(npy, "cannot be read");
	fclose(f);
	if (npuc_run_write(run, 0, image, 64, why) ||
	    npuc_run_submit(run, "run", NULL, &done, why))
		return fail("run", why);
	if (hal_wait(&done, 1, 0, HAL_FOREVER) < 0)
		return fail("wait", hal_last_error());
	if (npuc_run_read(run, 0, true, logits, 10, why))
		return fail("read", why);
	*digit = 0;
	for (int i = 1; i < 10; i++)
		if ((signed char)logits[i] > (signed char)logits[*digit])
			*digit = i;
	return 0;
}

int main(int argc, char **argv)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct npuc_program program;
	struct hal_device *dev;
	struct npuc_run *run;
	int digit, rc;

	if (argc != 4)
		return fail("usage", "consumer_npuc TARGET MODEL IMAGE");
	if (npuc_program_open(argv[2], NULL, &program, why))
		return fail("program", why);
	desc.rows = desc.cols = 4;
	if (hal_open(argv[1], NULL, &dev) < 0 ||
	    hal_partition_create(dev, &desc, &part) < 0)
		return fail(argv[1], hal_last_error());
	if (npuc_run_open(dev, part, &program, &run, why))
		return fail("open", why);
	rc = classify(run, argv[3], &digit);
	if (!rc)
		printf("a %d\n", digit);
	npuc_run_close(run);
	npuc_program_free(&program);
	hal_partition_destroy(part);
	hal_close(dev);
	return rc;
}
