/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict.c - evict buffers to host memory, and fetch them back.
 *
 * The engine chooses which buffer to evict or fetch, sets it to MOVES and queues it for
 * the partition's copy thread.  That thread copies the contents, has the backend give up
 * or find device memory, which may wait for the device, and sends a message.  end_copy
 * handles it: it frees the host memory, and wakes the queues and threads that wait.
 */
#define _GNU_SOURCE
#include "memory/evict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"
#include "memory/bimodal.h"
#include "memory/quota.h"
#include "memory/recolor.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/futex.h"

/* Bytes copied per call to the backend.  If only the engine may copy, it does other work
 * between two pieces, which are small then. */
#define PIECE        (UINT64_C(64) << 10)
#define PIECE_BESIDE (UINT64_C(16) << 20)

enum {
	SLOTS = 512,      /* number of slots of the hash table */
	LOOK_AHEAD = 256, /* pending records of a queue that a choice considers */
};

static struct evictable *evictable_at(struct list *cold)
{
	return container_of(cold, struct evictable, cold);
}

static enum place_of place_of(const struct evictable *ev)
{
	return (enum place_of)atomic_load(&ev->place);
}

static void set_place(struct evictable *ev, enum place_of place)
{
	atomic_store(&ev->place, (unsigned int)place);
	futex_wake(&ev->place, INT32_MAX);
}

/* Have the threads and queues that wait for memory of e try again. */
static void wake_waiters(struct evict *e)
{
	atomic_fetch_add(&e->changed, 1);
	futex_wake(&e->changed, INT32_MAX);
	bimodal_look(e->part);
}

/* ---- hash table of buffers --------------------------------------------------------- */

/* Fibonacci hashing; Knuth, The Art of Computer Programming, volume 3, 6.4. */
static struct list *evictable_slot(const struct evict *e, const void *mem)
{
	uint64_t h = (uint64_t)(uintptr_t)mem * UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(SLOTS == 1 << 9, "nine bits");
	return &e->slots[h >> (64 - 9)];
}

/* Return the buffer with backend handle mem, or NULL if none of e's has it. */
static struct evictable *find_evictable(const struct evict *e, const void *mem)
{
	hal_list_for_each (it, evictable_slot(e, mem)) {
		struct evictable *ev = container_of(it, struct evictable, slot);

		if (ev->buf->bk == mem)
			return ev;
	}
	return NULL;
}

/* Store the buffers of e that r uses in out, each once; return their number. */
static uint32_t used_by(const struct evict *e, const struct record *r,
			struct evictable **out)
{
	const void *mem[RECORD_MEMORY_MAX];
	uint32_t all, n = 0;

	if (r->cmd.op == REC_RECOLOR) {
		mem[0] = r->recolor->buf->bk;
		all = 1;
	} else {
		all = record_memory(r, mem);
	}
	for (uint32_t i = 0; i < all; i++) {
		struct evictable *ev = find_evictable(e, mem[i]);
		uint32_t k = 0;

		while (k < n && out[k] != ev)
			k++;
		if (ev != NULL && k == n)
			out[n++] = ev;
	}
	return n;
}

/* ---- the copy thread --------------------------------------------------------------- */

struct piece {
	struct evictable *ev;
	uint64_t at, bytes;
};

static int copy_piece(struct hal_device *dev, void *arg)
{
	const struct piece *p = arg;
	struct evictable *ev = p->ev;
	uint8_t *bytes = ev->bytes + p->at;

	return ev->out ? dev->table->cold.mem_read(dev->bk, ev->buf->bk, p->at, bytes,
						   p->bytes)
		       : dev->table->cold.mem_write(dev->bk, ev->buf->bk, p->at, bytes,
						    p->bytes);
}

static int give_up_memory(struct hal_device *dev, void *arg)
{
	const struct evictable *ev = arg;

	return dev->table->extra.mem_out(dev->bk, ev->buf->bk);
}

static int find_memory(struct hal_device *dev, void *arg)
{
	const struct evictable *ev = arg;

	return dev->table->extra.mem_in(dev->bk, ev->buf->bk,
					ev->colors.mask != 0 ? &ev->colors : NULL);
}

/* Have the backend do fn, on the calling thread if flag allows that. */
static int do_beside(struct hal_device *dev, uint64_t flag,
		     int (*fn)(struct hal_device *, void *), void *arg)
{
	return dev->virtual_clock ? fn(dev, arg) : device_beside(dev, flag, fn, arg);
}

static int copy_pieces(struct evictable *ev)
{
	struct hal_device *dev = ev->of->dev;
	const bool beside =
		!dev->virtual_clock && (dev->table->beside & HAL_BK_BESIDE_COPY) != 0;
	const uint64_t most = beside ? PIECE_BESIDE : PIECE;
	uint64_t all = ev->buf->bytes;
	struct piece p = {.ev = ev};
	int err = 0;

	for (; err == 0 && p.at < all; p.at += p.bytes) {
		p.bytes = all - p.at < most ? all - p.at : most;
		err = do_beside(dev, HAL_BK_BESIDE_COPY, copy_piece, &p);
	}
	if (err != 0)
		format_text(ev->why, sizeof(ev->why), "%s", hal_last_error());
	return err;
}

/* Copy ev to the host, and give up its device memory. */
static int move_out(struct evictable *ev)
{
	int err = copy_pieces(ev);

	return err != 0
		       ? err
		       : do_beside(ev->of->dev, HAL_BK_BESIDE_MEMORY, give_up_memory, ev);
}

/* Find device memory for ev, and copy it there. */
static int move_in(struct evictable *ev)
{
	struct hal_device *dev = ev->of->dev;
	int err = do_beside(dev, HAL_BK_BESIDE_MEMORY, find_memory, ev);

	if (err != 0) {
		format_text(ev->why, sizeof(ev->why), "%s", hal_last_error());
		ev->unplaced = true;
		return err;
	}
	err = copy_pieces(ev);
	if (err != 0)
		(void)do_beside(dev, HAL_BK_BESIDE_MEMORY, give_up_memory, ev);
	return err;
}

/* Move ev, and set ev->err.  Called by the copy thread; with clock=virtual by the engine.
 */
static void move_evictable(struct evictable *ev)
{
	ev->unplaced = false;
	ev->err = ev->out ? move_out(ev) : move_in(ev);
}

static void *copier_main(void *arg)
{
	struct evict *e = arg;

	while (!atomic_load(&e->stop)) {
		unsigned int seen = atomic_load(&e->wake);
		struct evictable *ev = atomic_exchange(&e->next, NULL);

		if (ev == NULL)
			futex_wait(&e->wake, seen, NULL);
		while (ev != NULL) {
			struct evictable *next = ev->next;

			move_evictable(ev);
			engine_post(e->dev, &ev->message);
			ev = next;
		}
	}
	return NULL;
}

static void wake_copier(struct evict *e)
{
	atomic_fetch_add(&e->wake, 1);
	futex_wake(&e->wake, 1);
}

static void queue_copy(struct evict *e, struct evictable *ev)
{
	struct evictable *head = atomic_load_explicit(&e->next, memory_order_relaxed);

	do
		ev->next = head;
	while (!atomic_compare_exchange_weak(&e->next, &head, ev));
	wake_copier(e);
}

/* ---- begin and end of a copy ------------------------------------------------------- */

/* Overwrite and free the contents in host memory. */
static void free_host_bytes(struct evictable *ev)
{
	if (ev->bytes == NULL)
		return;
	explicit_bzero(ev->bytes, ev->buf->bytes);
	free(ev->bytes);
	ev->bytes = NULL;
}

/* Note that ev is in host memory.  If that failed, keep the buffer on the device for
 * good. */
static void finish_eviction(struct evictable *ev)
{
	struct hal_buffer *buf = ev->buf;
	struct evict *e = ev->of;

	if (ev->err != 0) {
		free_host_bytes(ev);
		ev->unevictable = true;
		ev->err = 0;
		set_place(ev, PLACE_HERE);
		return;
	}
	partition_release(e->part, buf->charge);
	counter_add(&e->away, buf->charge);
	counter_add(&e->evictions, 1);
	counter_add(&e->evicted_bytes, buf->bytes);
	set_place(ev, PLACE_AWAY);
}

/* Free the host memory of ev after its contents were copied to the device.  If the copy
 * failed, the buffer stays evicted. */
static void finish_fetch(struct evictable *ev)
{
	struct hal_buffer *buf = ev->buf;
	struct evict *e = ev->of;

	if (ev->err != 0) {
		partition_release(e->part, buf->charge);
		set_place(ev, PLACE_AWAY);
		return;
	}
	free_host_bytes(ev);
	counter_add(&e->away, 0 - buf->charge);
	counter_add(&e->fetches, 1);
	counter_add(&e->fetched_bytes, buf->bytes);
	set_place(ev, PLACE_HERE);
}

/* Handle the message of the copy thread. */
static void end_copy(struct hal_device *dev, struct message *l)
{
	struct evictable *ev = container_of(l, struct evictable, message);
	struct hal_buffer *buf = ev->buf;
	struct evict *e = ev->of;

	e->moves--;
	dev->acted = true;
	if (ev->out)
		finish_eviction(ev);
	else
		finish_fetch(ev);
	if (ev->destroyed)
		buf->deferred.free(&buf->deferred);
	wake_waiters(e);
}

/* Begin to move ev, which the caller has set to MOVES. */
static void start_copy(struct evictable *ev, bool out)
{
	struct evict *e = ev->of;

	ev->out = out;
	ev->err = 0;
	e->moves++;
	if (e->dev->virtual_clock) {
		move_evictable(ev);
		end_copy(e->dev, &ev->message);
	} else {
		queue_copy(e, ev);
	}
}

/* Set ev to MOVES.  Return false if the host is copying ev: its state does not change,
 * and the waiters are woken when that copy ends. */
static bool try_claim(struct evictable *ev)
{
	unsigned int was = atomic_load(&ev->place);

	for (;;) {
		atomic_store(&ev->place, PLACE_MOVES);
		if (atomic_load(&ev->buf->copies) == 0) {
			atomic_store(&ev->awaited, false);
			return true;
		}
		atomic_store(&ev->awaited, true);
		set_place(ev, (enum place_of)was);
		if (atomic_load(&ev->buf->copies) != 0)
			return false;
	}
}

/* ---- evict ------------------------------------------------------------------------- */

/* Marks of buffers that must not be evicted, added to evict.mark_base.  Each search takes
 * MARKS new numbers, so older marks need not be cleared. */
enum {
	USED,   /* by an in-flight command, or by the next command of a runnable queue */
	WANTED, /* by the command for which memory is needed (queue_in_turn) */
	MARKS,
};

/* Mark the buffers that r uses. */
static void mark(const struct evict *e, const struct record *r, uint64_t how)
{
	struct evictable *set[RECORD_MEMORY_MAX];
	uint32_t n = used_by(e, r, set);

	while (n-- > 0)
		set[n]->mark = e->mark_base + how;
}

/* Return the queue whose turn it is to get its buffers, or NULL if no queue waits. */
static struct hal_queue *queue_in_turn(const struct evict *e)
{
	hal_list_for_each (it, &e->turns) {
		struct hal_queue *q =
			container_of(it, struct hal_queue, memory.evict_turn);

		/* A suspended queue must not block those after it. */
		if (q->state == QUEUE_RUNNING && q->err == 0 && !q->halted)
			return q;
	}
	return NULL;
}

static void mark_queue(const struct evict *e, const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done && !f->killed)
			mark(e, f->record, USED);
	if (q->runnable)
		mark(e, q->next, USED);
}

/* Return whether q waits for something other than memory: when it goes on nobody knows.
 */
static bool waits_for_others(const struct hal_queue *q)
{
	const struct record *r;

	if (q->state != QUEUE_RUNNING || q->err != 0 || q->halted)
		return true;
	if (q->issue.pos == q->accepted)
		return false;
	r = cursor_record(q, q->issue);
	return r->cmd.op == REC_WAIT || r->cmd.op == REC_FOREIGN ||
	       r->cmd.op == REC_HEAD || r->cmd.op == HAL_OP_HOST;
}

/* Note in how many records of q each buffer is used next: the least of all queues. */
static void note_next_uses(const struct evict *e, const struct hal_queue *q)
{
	struct evictable *set[RECORD_MEMORY_MAX];
	union cursor c = q->issue;

	if (waits_for_others(q))
		return;
	for (uint32_t i = 0; i < LOOK_AHEAD && c.pos != q->accepted; i++) {
		const struct record *r = cursor_record(q, c);
		uint32_t n = used_by(e, r, set);

		while (n-- > 0)
			if (set[n]->use_mark != e->mark_base || set[n]->next_use > i) {
				set[n]->use_mark = e->mark_base;
				set[n]->next_use = i;
			}
		cursor_step(q, &c, r);
	}
}

static uint32_t next_use(const struct evict *e, const struct evictable *ev)
{
	return ev->use_mark == e->mark_base ? ev->next_use : UINT32_MAX;
}

/* Mark all buffers that must not be evicted now. */
static void mark_used(struct evict *e)
{
	struct hal_queue *q = queue_in_turn(e);
	const struct record *r = q != NULL ? queue_next(q) : NULL;

	e->mark_base += MARKS;
	hal_list_for_each (it, &e->part->queues)
		mark_queue(e, container_of(it, struct hal_queue, on_partition));
	if (r != NULL)
		mark(e, r, WANTED);
}

/* Return the buffer that is best evicted: the one that pending records use last, and of
 * those that none uses the least recently used.  NULL: there is none.  *busy,
 * *unevictable are as for choose_victim. */
static struct evictable *best_victim(const struct evict *e, bool *busy,
				     uint32_t *unevictable)
{
	struct evictable *best = NULL;

	*unevictable = 0;
	hal_list_for_each (it, &e->cold) {
		struct evictable *ev = evictable_at(it);

		*unevictable += ev->unevictable;
		if (ev->unevictable || ev->buf->maps != 0 || place_of(ev) == PLACE_AWAY ||
		    ev->mark == e->mark_base + WANTED)
			continue;
		if (ev->mark == e->mark_base + USED || ev->pinned)
			*busy = true;
		else if (best == NULL || next_use(e, ev) > next_use(e, best))
			best = ev;
	}
	return best;
}

/* Set the buffer that is best evicted to MOVES, and return it.  If there is none, return
 * NULL, and set *busy if a buffer can be evicted later.  *unevictable counts the buffers
 * that the device has failed to evict. */
static struct evictable *choose_victim(struct evict *e, bool *busy, uint32_t *unevictable)
{
	struct evictable *ev;

	mark_used(e);
	hal_list_for_each (it, &e->part->queues)
		note_next_uses(e, container_of(it, struct hal_queue, on_partition));
	while ((ev = best_victim(e, busy, unevictable)) != NULL && !try_claim(ev)) {
		ev->mark = e->mark_base + USED; /* by the host */
		*busy = true;
	}
	return ev;
}

int evict_room(struct hal_partition *part, uint64_t bytes, int err, bool *busy)
{
	struct evict *e = part->memory.evict;
	struct evictable *ev;
	uint32_t unevictable = 0;
	char text[400];

	if (e == NULL || err != -ENOSPC || bytes > counter_get(&part->memory.quota))
		return err;
	if (e->moves + e->holds != 0)
		return -EAGAIN;
	format_text(text, sizeof(text), "%s", hal_last_error());
	ev = choose_victim(e, busy, &unevictable);
	if (ev == NULL && !*busy && unevictable != 0)
		return fail(ENOSPC,
			    "%s; no buffer can be evicted: the device failed to copy out "
			    "%u buffers",
			    text, unevictable);
	if (ev == NULL)
		return fail(ENOSPC, "%s; %s", text,
			    *busy ? "all buffers that can be evicted are in use"
				  : "no buffer can be evicted");
	ev->bytes = malloc(ev->buf->bytes);
	if (ev->bytes == NULL) {
		set_place(ev, PLACE_HERE);
		return fail(ENOMEM, "%s; no host memory to evict %llu bytes", text,
			    U64(ev->buf->bytes));
	}
	start_copy(ev, true);
	return place_of(ev) == PLACE_MOVES ? -EAGAIN : 0;
}

int evict_charge(struct hal_buffer *buf, bool *busy)
{
	char name[BUFFER_DESCRIPTION];
	const char *what = buffer_describe(buf, "a buffer", name);
	int err;

	do {
		err = partition_charge(buf->part, buf->charge, what);
		if (err == 0)
			return 0;
		err = evict_room(buf->part, buf->charge, err, busy);
	} while (err == 0);
	return err;
}

/* Allocate host memory and set its address, or register memory that has one. */
static int allocate_host(struct hal_buffer *buf, const struct hal_bk_colors *c,
			 void **mem)
{
	const struct hal_bk_cold *cold = &buf->dev->table->cold;
	void *bk = buf->dev->bk;
	int err;

	if (buf->registered)
		return cold->mem_register(bk, buf->part->bk, buf->address, buf->bytes,
					  mem);
	err = cold->mem_alloc(bk, buf->part->bk, buf->bytes, c, HAL_BK_MEM_HOST, mem);
	if (err != 0)
		return err;
	err = cold->mem_map(bk, *mem, &buf->address);
	if (err != 0) {
		char text[512];

		format_text(text, sizeof(text), "%s", hal_last_error());
		(void)cold->mem_free(bk, *mem);
		return fail(err, "%s", text);
	}
	return 0;
}

int evict_allocate(struct hal_buffer *buf, const struct hal_bk_colors *c, void **mem)
{
	struct hal_device *dev = buf->dev;

	if ((buf->flags & HAL_BK_MEM_HOST) != 0)
		return allocate_host(buf, dev->info.colors != 0 ? c : NULL, mem);
	if (buf->imported)
		return dev->table->cold.mem_import(dev->bk, buf->part->bk, buf->import_fd,
						   buf->bytes, buf->flags, mem);
	return dev->table->cold.mem_alloc(dev->bk, buf->part->bk, buf->bytes,
					  dev->info.colors != 0 ? c : NULL, buf->flags,
					  mem);
}

int evict_place(struct hal_buffer *buf, const struct hal_bk_colors *c, void **mem,
		bool *busy)
{
	int err;

	do {
		err = evict_charge(buf, busy);
		if (err != 0)
			return err;
		err = evict_allocate(buf, c, mem);
		if (err == 0)
			return 0;
		partition_release(buf->part, buf->charge);
		err = evict_room(buf->part, buf->charge, err, busy);
	} while (err == 0);
	return err;
}

void evict_hold(struct hal_partition *part)
{
	if (part->memory.evict != NULL)
		part->memory.evict->holds++;
}

void evict_unhold(struct hal_partition *part)
{
	struct evict *e = part->memory.evict;

	if (e == NULL)
		return;
	e->holds--;
	wake_waiters(e);
}

/* ---- fetch ------------------------------------------------------------------------- */

/* Begin to move ev back to the device.  Return -EAGAIN if the host is copying the buffer.
 */
static int begin_fetch(struct evictable *ev)
{
	struct hal_buffer *buf = ev->buf;
	int err;

	if (!try_claim(ev))
		return -EAGAIN;
	err = partition_charge(buf->part, buf->charge, "an evicted buffer");
	if (err != 0)
		set_place(ev, PLACE_AWAY);
	else
		start_copy(ev, false);
	return err;
}

int evict_fetch(struct hal_buffer *buf, bool *busy)
{
	struct evictable *ev = buf->evict;
	int err = 0;

	while (err == 0 && place_of(ev) == PLACE_AWAY) {
		if (ev->err == 0) {
			err = begin_fetch(ev);
		} else {
			err = fail(ev->err, "%s%s",
				   ev->unplaced ? ""
						: "cannot copy an evicted buffer back to "
						  "the device: ",
				   ev->why);
			ev->err = 0;
			if (!ev->unplaced)
				return err;
		}
		if (err != 0)
			err = evict_room(buf->part, buf->charge, err, busy);
	}
	return err == 0 && place_of(ev) == PLACE_MOVES ? -EAGAIN : err;
}

/* ---- check before each command ----------------------------------------------------- */

/* Remove q from the queues that wait for buffers. */
static void leave_turns(struct hal_queue *q)
{
	if (list_empty(&q->memory.evict_turn))
		return;
	list_del(&q->memory.evict_turn);
	wake_waiters(q->home->memory.evict);
}

void evict_forget(struct hal_queue *q)
{
	leave_turns(q);
}

/* Park q until bimodal_wake, which is called when memory may have become free; return
 * 0. */
static int park_for_memory(struct hal_queue *q)
{
	q->parked = true;
	q->memory.parked = true;
	q->home->memory.ends_wanted = true;
	return 0;
}

/* Add q to the queues that wait for buffers, unless it is one of them. */
static void join_turns(struct hal_queue *q)
{
	if (!list_empty(&q->memory.evict_turn))
		return;
	list_add_before(&q->home->memory.evict->turns, &q->memory.evict_turn);
	q->memory.evict_ns = q->dev->now;
}

/* Let q issue its command: make the buffers in set the most recently used; return 1. */
static int grant(struct hal_queue *q, struct evictable *const *set, uint32_t n)
{
	struct evict *e = q->home->memory.evict;

	for (uint32_t i = 0; i < n; i++) {
		list_take(&set[i]->cold);
		list_add_before(&e->cold, &set[i]->cold);
	}
	if (!list_empty(&q->memory.evict_turn))
		counter_add(&e->wait_ns, q->dev->now - q->memory.evict_ns);
	leave_turns(q);
	return 1;
}

static COLD int too_large(const struct hal_queue *q, uint64_t bytes, uint32_t n)
{
	char text[64];

	partition_describe(q->home, text, sizeof(text));
	return fail(ENOSPC,
		    "its %u buffers have %llu bytes in total, but the quota of %s is "
		    "%llu bytes, so they can never be on the device "
		    "at once",
		    n, U64(bytes), text, U64(counter_get(&q->home->memory.quota)));
}

/* Bring all buffers in set to the device.  Return 0, -EAGAIN if q has to wait, or another
 * -errno. */
static int fetch_all(struct hal_queue *q, struct evictable *const *set, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += set[i]->buf->charge;
	if (bytes > counter_get(&q->home->memory.quota))
		return too_large(q, bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		bool busy = false;
		int err = evict_fetch(set[i]->buf, &busy);

		if (err == -ENOSPC && busy)
			return -EAGAIN;
		if (err != 0)
			return err;
	}
	return 0;
}

int evict_lets(struct hal_queue *q, const struct record *r)
{
	struct evict *e = q->home->memory.evict;
	struct evictable *set[RECORD_MEMORY_MAX];
	uint32_t n = used_by(e, r, set), i = 0;
	int err;

	while (i < n && place_of(set[i]) == PLACE_HERE)
		i++;
	if (i == n)
		return grant(q, set, n);
	join_turns(q);
	if (queue_in_turn(e) != q)
		return park_for_memory(q);
	err = fetch_all(q, set, n);
	if (err == -EAGAIN)
		return park_for_memory(q);
	if (err == 0)
		return grant(q, set, n);
	leave_turns(q);
	return err;
}

int evict_lets_move(struct hal_queue *q, struct recolor *m)
{
	struct evictable *ev = m->buf->evict;
	bool busy = false;
	int err = 0;

	join_turns(q);
	if (queue_in_turn(q->home->memory.evict) != q)
		return park_for_memory(q);
	if (ev != NULL)
		err = evict_fetch(m->buf, &busy);
	if (err == 0)
		err = evict_place(m->buf, &m->colors, &m->to, &busy);
	if (err == -EAGAIN || (err == -ENOSPC && busy))
		return park_for_memory(q);
	if (err == 0 && ev != NULL)
		ev->pinned = true;
	if (err == 0)
		return grant(q, &ev, ev != NULL ? 1 : 0);
	leave_turns(q);
	return err;
}

bool evict_moves(const struct hal_partition *part)
{
	const struct evict *e = part->memory.evict;

	return e != NULL && e->moves + e->holds != 0;
}

void evict_describe(const struct hal_partition *part, struct hal_partition_memory_info *i)
{
	const struct evict *e = part->memory.evict;

	if (e == NULL)
		return;
	i->memory_limit = e->limit;
	i->memory_buffers = counter_get(&e->all);
	i->memory_away = counter_get(&e->away);
	i->evictions = counter_get(&e->evictions);
	i->evicted_bytes = counter_get(&e->evicted_bytes);
	i->fetches = counter_get(&e->fetches);
	i->fetched_bytes = counter_get(&e->fetched_bytes);
	i->fetch_wait_ns = counter_get(&e->wait_ns);
}

/* ---- create and destroy buffers ---------------------------------------------------- */

struct evictable *evictable_make(struct hal_buffer *buf, const struct hal_bk_colors *c)
{
	struct evictable *ev = calloc(1, sizeof(*ev));

	if (ev == NULL) {
		(void)fail(ENOMEM, "no memory for a buffer");
		return NULL;
	}
	ev->buf = buf;
	ev->of = buf->part->memory.evict;
	ev->message.fn = end_copy;
	evict_recolored(ev, c);
	return ev;
}

void evict_recolored(struct evictable *ev, const struct hal_bk_colors *c)
{
	ev->colors = (struct hal_bk_colors){.mask = c->mask};
	if (c->weights == NULL)
		return;
	for (uint32_t i = 0; i < ev->of->dev->info.colors; i++)
		ev->weights[i] = c->weights[i];
	ev->colors.weights = ev->weights;
}

void evict_enter(struct hal_buffer *buf)
{
	struct evictable *ev = buf->evict;

	list_add_before(&ev->of->cold, &ev->cold);
	list_add_before(evictable_slot(ev->of, buf->bk), &ev->slot);
}

bool evict_leave(struct hal_buffer *buf)
{
	struct evictable *ev = buf->evict;

	if (place_of(ev) == PLACE_MOVES) {
		ev->destroyed = true;
		return false;
	}
	list_take(&ev->cold);
	list_take(&ev->slot);
	if (place_of(ev) == PLACE_AWAY)
		counter_add(&ev->of->away, 0 - buf->charge);
	return true;
}

void evict_left(struct hal_buffer *buf)
{
	struct evictable *ev = buf->evict;
	struct evict *e = ev->of;

	if (place_of(ev) != PLACE_AWAY)
		partition_release(buf->part, buf->charge);
	free_host_bytes(ev);
	free(ev);
	wake_waiters(e);
}

/* ---- called by any thread ---------------------------------------------------------- */

enum place_of evict_copies(struct hal_buffer *buf)
{
	struct evictable *ev = buf->evict;
	enum place_of place;

	for (;;) {
		atomic_fetch_add(&buf->copies, 1);
		place = place_of(ev);
		if (place != PLACE_MOVES)
			return place;
		evict_copied(buf);
		futex_wait(&ev->place, PLACE_MOVES, NULL);
	}
}

static int call_wake_waiters(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;

	(void)dev;
	wake_waiters(buf->evict->of);
	return 0;
}

void evict_copied(struct hal_buffer *buf)
{
	atomic_fetch_sub(&buf->copies, 1);
	if (atomic_exchange(&buf->evict->awaited, false))
		(void)engine_call(buf->dev, call_wake_waiters, buf);
}

unsigned int evict_ended(struct evict *e)
{
	return atomic_load(&e->changed);
}

void evict_wait(struct evict *e, unsigned int ended)
{
	futex_wait(&e->changed, ended, NULL);
}

int evict_call(struct hal_device *dev, struct evict *e,
	       int (*fn)(struct hal_device *, void *), void *arg)
{
	unsigned int seen;
	int err;

	if (e == NULL)
		return engine_call(dev, fn, arg);
	for (;;) {
		seen = evict_ended(e);
		err = engine_call(dev, fn, arg);
		if (err != -EAGAIN)
			return err;
		evict_wait(e, seen);
	}
}

/* ---- create and destroy partitions ------------------------------------------------- */

static int copier_start(struct evict *e)
{
	sigset_t all, old;
	int err;

	if (e->dev->virtual_clock)
		return 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&e->thread, NULL, copier_main, e);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		return fail(err, "%s: cannot start the eviction thread: %s", e->dev->name,
			    hal_strerror(err));
	(void)pthread_setname_np(e->thread, "hal-evict");
	e->has_thread = true;
	return 0;
}

int evict_open(struct hal_partition *part, uint64_t limit)
{
	struct evict *e = calloc(1, sizeof(*e));
	int err;

	if (e != NULL)
		e->slots = calloc(SLOTS, sizeof(*e->slots));
	if (e == NULL || e->slots == NULL) {
		free(e);
		return fail(ENOMEM, "no memory for a partition");
	}
	e->dev = part->dev;
	e->part = part;
	e->limit = limit;
	list_init(&e->cold);
	list_init(&e->turns);
	for (uint32_t i = 0; i < SLOTS; i++)
		list_init(&e->slots[i]);
	err = copier_start(e);
	if (err != 0) {
		evict_close(e);
		return err;
	}
	part->memory.evict = e;
	return 0;
}

void evict_close(struct evict *e)
{
	if (e == NULL)
		return;
	if (e->has_thread) {
		atomic_store(&e->stop, true);
		wake_copier(e);
		(void)pthread_join(e->thread, NULL);
	}
	free(e->slots);
	free(e);
}
