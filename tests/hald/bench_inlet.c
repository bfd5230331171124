/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_inlet - what the engine does more for a launch that another process submits
 * through a ring than for one of its own process, in instructions.
 *
 *   tools/figures/count_instructions tests/hald/bench_inlet take [N]
 *
 * N launches of two buffers, in batches of 8, once written to a ring as another process
 * does, and once by hal_submit.  What is counted in both is the engine's part: from the
 * look at the ring until the end of the last launch is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "inlet_world.h"

#define BATCH 8

static void wait_for(struct hal_queue *q, uint64_t value)
{
	struct hal_point p = {hal_queue_get_timeline(q), value};

	inlet_must(hal_wait(&p, 1, 0, HAL_FOREVER));
}

int main(int argc, char **argv)
{
	static struct inlet_world w;
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 800;
	struct hal_arg args[2];
	struct hal_queue *local;
	struct hal_cmd cmd;

	if (argc < 2 || strcmp(argv[1], "take") != 0 || count == 0) {
		fprintf(stderr, "bench_inlet take [N]\n");
		return 2;
	}
	inlet_world_open(&w, "ref?clock=virtual");
	inlet_bind(&w);
	inlet_must(hal_queue_create(w.own, &qd, &local));
	args[0] = (struct hal_arg){.buffer = w.buf};
	args[1] = (struct hal_arg){.buffer = w.other};
	cmd = hal_cmd_launch(w.name[NAME_KERNEL].object, args, 2);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	for (int part = 0; part < 4; part++) { /* each once to warm up */
		const bool far = part % 2 != 0;
		uint64_t done =
			far ? atomic_load(&w.told.value)
			    : hal_timeline_get_value(hal_queue_get_timeline(local), NULL);

		for (unsigned long i = 0; i < count; i += BATCH) {
			for (int k = 0; k < BATCH; k++)
				if (far)
					(void)inlet_launch(&w, FAR_LAST | FAR_WHOLE);
				else
					inlet_must(hal_submit(local, &sd, NULL));
			done += BATCH;
			if (far) {
				atomic_store(&w.ring->tail, w.tail);
				inlet_rung(&w.inlet); /* the thread of bells */
			}
			if (part >= 2)
				CALLGRIND_START_INSTRUMENTATION;
			wait_for(far ? w.queue : local, done);
			if (part >= 2)
				CALLGRIND_STOP_INSTRUMENTATION;
		}
		if (part >= 2)
			CALLGRIND_DUMP_STATS_AT(far ? "far" : "local");
	}
	inlet_must(hal_queue_destroy(local));
	inlet_world_close(&w);
	count = (count + BATCH - 1) / BATCH * BATCH;
	printf("launches %lu\nfigure_is broker.take.instructions %lu far -local\n"
	       "note_is local %lu local\nnote_is far %lu far\n",
	       count, count, count, count);
	return 0;
}
