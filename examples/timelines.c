/* SPDX-License-Identifier: Apache-2.0 */
/* Work that waits for work: a pipeline over three queues, ordered by points on timelines
 * alone.  It needs no kernel, so it runs on any device: timelines [target].
 *
 *   host --go--> "fill" fills a part --> "move" copies it --> "tell" calls the host
 *
 * Everything is submitted in the wrong order, before anything may begin: waiting for a
 * point that nobody has signalled yet is legal. */
#include <stdio.h>
#include <stdlib.h>

#include <hal/hal.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

enum { PARTS = 4, PART_BYTES = 256 };

struct stage {
	struct hal_queue *queue;
	struct hal_timeline *finished; /* part n (from 1) is through at value n */
};

/* Waits for one point, signals the stage's own. */
static void submit(const struct stage *s, uint64_t part, struct hal_point after,
		   struct hal_cmd cmd)
{
	struct hal_point through = {s->finished, part};
	struct hal_submit_desc work = {.size = sizeof(work),
				       .cmds = &cmd,
				       .cmd_count = 1,
				       .waits = &after,
				       .wait_count = 1,
				       .signals = &through,
				       .signal_count = 1};

	TRY(hal_submit(s->queue, &work, NULL));
}

/* On the thread of the device's callbacks, or inside hal_wait. */
static void tell(void *user)
{
	printf("part %u is through\n", *(const unsigned int *)user);
}

static void make_stage(struct hal_device *dev, struct hal_partition *part,
		       struct stage *s)
{
	struct hal_queue_desc queue = {.size = sizeof(queue)};

	TRY(hal_queue_create(part, &queue, &s->queue));
	TRY(hal_timeline_create(dev, &s->finished));
}

static unsigned int count_wrong(struct hal_buffer *buf)
{
	uint32_t words[PARTS * PART_BYTES / 4];
	unsigned int wrong = 0;

	TRY(hal_buffer_read(buf, 0, words, sizeof(words)));
	for (unsigned int i = 0; i < PARTS * PART_BYTES / 4; i++)
		wrong += words[i] != 0x1000 + i / (PART_BYTES / 4);
	return wrong;
}

int main(int argc, char **argv)
{
	struct hal_partition_desc units = {.size = sizeof(units), .units_floor = 4};
	struct hal_buffer_desc bytes = {.size = sizeof(bytes),
					.bytes = PARTS * PART_BYTES};
	unsigned int names[PARTS];
	struct stage fill, move, notice;
	struct hal_buffer *from, *to;
	struct hal_partition *part;
	struct hal_timeline *go;
	struct hal_device *dev;

	TRY(hal_open(argc > 1 ? argv[1] : "ref", NULL, &dev));
	TRY(hal_partition_create(dev, &units, &part));
	TRY(hal_buffer_create(part, &bytes, &from));
	TRY(hal_buffer_create(part, &bytes, &to));
	TRY(hal_timeline_create(dev, &go));
	make_stage(dev, part, &fill);
	make_stage(dev, part, &move);
	make_stage(dev, part, &notice);

	/* The last stage first: only the points say what comes after what. */
	for (unsigned int i = 0; i < PARTS; i++) {
		names[i] = i + 1;
		submit(&notice, i + 1, (struct hal_point){move.finished, i + 1},
		       hal_cmd_host(tell, &names[i]));
	}
	for (unsigned int i = 0; i < PARTS; i++)
		submit(&move, i + 1, (struct hal_point){fill.finished, i + 1},
		       hal_cmd_copy(to, UINT64_C(1) * i * PART_BYTES, from,
				    UINT64_C(1) * i * PART_BYTES, PART_BYTES));
	for (unsigned int i = 0; i < PARTS; i++)
		submit(&fill, i + 1, (struct hal_point){go, i + 1},
		       hal_cmd_fill(from, UINT64_C(1) * i * PART_BYTES, PART_BYTES,
				    0x1000 + i));

	for (unsigned int i = 0; i < PARTS; i++) {
		struct hal_point through = {notice.finished, i + 1};

		printf("part %u may go\n", i + 1);
		TRY(hal_timeline_signal(go, i + 1));
		TRY(hal_wait(&through, 1, 0, HAL_FOREVER));
	}
	printf("%u words wrong\n", count_wrong(to));

	TRY(hal_queue_destroy(fill.queue));
	TRY(hal_queue_destroy(move.queue));
	TRY(hal_queue_destroy(notice.queue));
	TRY(hal_timeline_destroy(fill.finished));
	TRY(hal_timeline_destroy(move.finished));
	TRY(hal_timeline_destroy(notice.finished));
	TRY(hal_timeline_destroy(go));
	TRY(hal_buffer_destroy(from));
	TRY(hal_buffer_destroy(to));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	return 0;
}
