/* SPDX-License-Identifier: Apache-2.0 */
/* replay_trial.c - a long journal, replayed: figures, or by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/ext/replay.h>
#include <hal/hal.h>

#include "world.h"

static const char *const policies[] = {"wfq", "edf", "priority", "rr", "fifo", NULL};

/* replay_trial [figure] [TARGET [ROUNDS [SEED [FILE]]]] */
int main(int argc, char **argv)
{
	int figure = argc > 1 && strcmp(argv[1], "figure") == 0;
	char **words = argv + 1 + figure;
	int count = argc - 1 - figure;
	char made[] = "/tmp/replay_XXXXXX";
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	struct trial t = {
		.target = count > 0 ? words[0] : "ref?clock=real&depth=2",
		.policy = "wfq",
		.threads = 4,
		.rounds = count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : 6000,
		.seed = count > 2 ? strtoull(words[2], NULL, 10) : 1,
		.journal = count > 3 ? words[3] : made,
		.callbacks =
			strstr(count > 0 ? words[0] : "clock=real", "clock=real") != NULL,
		.policies = policies,
	};

	if (t.journal == made) {
		int fd = mkstemp(made);

		if (fd < 0) {
			perror(made);
			return 1;
		}
		(void)close(fd);
	}
	t.events = t.rounds / 10;
	if (trial_run(&t) != 0)
		return 1;
	if (hal_replay(t.journal, &i) != 0) {
		fprintf(stderr, "hal_replay: %s\n", hal_last_error());
		return 1;
	}
	if (i.mismatches != 0)
		fprintf(stderr, "%s\n", i.mismatch);
	if (figure)
		printf("figure hal.replay.decisions %llu\nfigure hal.replay.mismatches "
		       "%llu\n",
		       (unsigned long long)i.decisions, (unsigned long long)i.mismatches);
	else
		printf("turns %llu inputs %llu decisions %llu mismatches %llu\n",
		       (unsigned long long)i.turns, (unsigned long long)i.inputs,
		       (unsigned long long)i.decisions, (unsigned long long)i.mismatches);
	if (t.journal == made)
		(void)unlink(made);
	return i.mismatches != 0;
}
