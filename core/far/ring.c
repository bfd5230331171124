/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - map the memory that is shared with hald, and know what is in it; see ring.h.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/write.h"
#include "far/internal.h"

const struct far_told far_not_told;

/* ---- mappings ---------------------------------------------------------------------- */

/* Map bytes of fd, unless a child of fork() would have to use it.  Return NULL if that
 * fails. */
static void *map(int fd, uint64_t bytes, int protection)
{
	void *at =
		fd >= 0 ? mmap(NULL, bytes, protection, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (at == MAP_FAILED)
		return NULL;
	(void)madvise(at, bytes, MADV_DONTFORK);
	return at;
}

void far_board_map(struct far_device *dev, int board, int bell)
{
	dev->board = map(board, sizeof(*dev->board), PROT_READ);
	if (board >= 0)
		(void)close(board);
	dev->bell = bell;
}

void far_board_unmap(struct far_device *dev)
{
	union {
		const struct far_board *in;
		void *out;
	} board = {.in = dev->board};

	if (board.in != NULL)
		(void)munmap(board.out, sizeof(*board.in));
	if (dev->bell >= 0)
		(void)close(dev->bell);
	dev->board = NULL;
	dev->bell = -1;
}

void far_ring_map(struct far_queue *q, const struct far_call *c)
{
	const struct far_device *dev = q->far.dev;
	uint64_t place = c->a[2], slots = c->a[3];

	if (place >= FAR_RINGS_MAX || slots == 0 || slots > INT32_MAX ||
	    (slots & (slots - 1)) != 0 || dev->board == NULL || dev->bell < 0)
		return;
	q->ring = map(c->in_fd, far_ring_bytes((uint32_t)slots), PROT_READ | PROT_WRITE);
	if (q->ring == NULL)
		return;
	if (FAR_INDEX(q->part->handle) < FAR_BOUND_MAX) {
		q->part_word = FAR_INDEX(q->part->handle) / 64;
		q->part_bit = UINT64_C(1) << FAR_INDEX(q->part->handle) % 64;
	}
	q->told = &dev->board->told[place];
	q->timeline->told = q->told;
	q->slot_count = (uint32_t)slots;
	q->slot_mask = q->slot_count - 1;
	q->limit = q->slot_count;
	q->rung = atomic_load(&q->told->again) - 1;
	q->number = c->a[4];
	q->rights = c->a[5];
}

void far_ring_unmap(struct far_queue *q)
{
	if (q->ring != NULL)
		(void)munmap(q->ring, far_ring_bytes(q->slot_count));
	q->ring = NULL;
	q->told = &far_not_told;
}

void far_ring_moved(struct far_queue *q, const struct far_call *c)
{
	if (q->ring == NULL)
		return;
	q->tail = (unsigned int)c->a[2];
	q->submissions = c->a[3];
	q->limit = atomic_load(&q->told->head) + q->slot_count;
	atomic_store_explicit(&q->ring->tail, q->tail, memory_order_release);
}

/* ---- what launches need ------------------------------------------------------------- */

void far_ring_kernel(struct far_kernel *k)
{
	struct far_slot s = {.op = HAL_OP_LAUNCH, .marks = FAR_LAST | FAR_WHOLE};

	k->ring_args = UINT32_MAX;
	if (k->info.arg_count > FAR_ARGS_MAX)
		return;
	s.arg_count = (uint8_t)k->info.arg_count;
	k->head = s.words[0];
	k->slots = far_launch_slots(k->info.arg_count);
	k->ring_args = k->info.arg_count;
}

void far_ring_bound(const struct far_queue *q, const struct hal_submit_desc *d)
{
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);

		if (cmd->op == HAL_OP_LAUNCH)
			atomic_fetch_or(&((const struct far_kernel *)cmd->launch.kernel)
						 ->prog->bound[q->part_word],
					q->part_bit);
	}
}
