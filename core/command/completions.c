/* SPDX-License-Identifier: Apache-2.0 */
/* completions.c - write entries into a ring of completions (the engine's side). */
#include "command/completions.h"

#include "util/compiler.h"
#include "util/fd.h"
#include "util/futex.h"

/* Make .fd readable.  Entries that are added before the reader clears .notified share one
 * write(2). */
void completions_notify(struct hal_completions *c)
{
	if (atomic_exchange(&c->notified, 1) == 0)
		fd_signal(c->signal_fd);
}

void completions_lost(struct hal_device *dev)
{
	hal_list_for_each (it, &dev->command.rings)
		completions_notify(container_of(it, struct hal_completions, on_device));
}

void completions_add(struct hal_queue *q, int status, uint64_t submit_ns, uint64_t end_ns)
{
	struct hal_completions *c = q->completions;
	uint32_t tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
	struct hal_completion *e = &c->entries[tail & (c->size - 1)];

	e->queue = q->told_as;
	e->value = ++q->notified;
	e->tag = q->retire_terms.tag;
	e->status = status;
	e->reserved = 0;
	e->submit_ns = submit_ns;
	/* The device's clock may lag: do not report an end before the submit. */
	e->end_ns = end_ns > submit_ns ? end_ns : submit_ns;
	atomic_store_explicit(&c->tail, tail + 1, memory_order_release);
	completions_notify(c);
	atomic_store(&c->noticed, tail + 1);
	if (UNLIKELY(atomic_load(&c->awaited) != 0))
		futex_wake(&c->noticed, 1);
}
