/* SPDX-License-Identifier: Apache-2.0 */
/* program.c TARGET [abandon]: work for a moment, then "ready", then nothing more until
 * its input ends; abandon: it then ends without closing anything. */
#include <stdio.h>
#include <string.h>

#include "work.h"

int main(int argc, char **argv)
{
	struct work w = {0};

	if (argc < 2 || work_open(&w, argv[1], NULL) != 0) {
		printf("%s\n", argc < 2 ? "no target" : hal_last_error());
		return 1;
	}
	for (int i = 0; i < WORK_ROUNDS; i++)
		if (work_round(&w) != 0) {
			printf("%s\n", hal_last_error());
			return 1;
		}
	printf("ready\n");
	(void)fflush(stdout);
	while (getchar() != EOF)
		if (work_round(&w) != 0) /* a round for each character */
			return 1;
	if (argc > 2 && strcmp(argv[2], "abandon") == 0)
		return 0;
	return work_close(&w) != 0;
}
