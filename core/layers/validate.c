/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.c - layer validate: check that core and backend keep the rules of
 * hal/backend.h.
 *
 * Calls from the core: handles must be alive and of this device, fields in range, and
 * commands allowed in their queue.  A call that breaks a rule returns -EPROTO and does
 * not reach the backend.  Results from the backend: handles, texts, errnos and times must
 * be valid, and each event must belong to a submitted command that has not completed.  A
 * result that breaks a rule becomes -EPROTO.  If poll breaks a rule, the device is
 * lost, because none of its later events can be trusted.
 *
 * A violation is reported in hal_last_error of the call and in the file of option
 * layers.report.  hal_close returns -EPROTO with the first one.  Objects are named by
 * kind, number (from 0 in the order of creation) and the code that created them.
 *
 * check_*() run before the backend's operation, got_*() after it.
 */
#include "layers/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"
#include "util/output.h"

/* ---- partitions ------------------------------------------------------------------- */

static bool overlap(const struct hal_bk_partition_desc *a,
		    const struct hal_bk_partition_desc *b)
{
	return a->row < b->row + b->rows && b->row < a->row + a->rows &&
	       a->col < b->col + b->cols && b->col < a->col + a->cols;
}

/* Check a partition with units: in range, and disjoint from all other partitions and from
 * the targets of their moves.  self: the partition that is resized, or NULL. */
static int check_desc(struct validate *v, const char *op, const struct tracked *self,
		      const struct hal_bk_partition_desc *d)
{
	const struct hal_device_info *i = &v->info;
	char text[96];

	if (d->index >= i->partitions_max)
		return CORE(v,
			    "%s: index %u is out of range; the device has %u partitions",
			    op, d->index, i->partitions_max);
	if (d->host != NULL)
		return CORE(v, "%s: partition index %u has both units and a host", op,
			    d->index);
	if (d->units == 0 || d->units != (uint32_t)d->rows * d->cols ||
	    (uint32_t)d->row + d->rows > i->unit_rows ||
	    (uint32_t)d->col + d->cols > i->unit_cols)
		return CORE(v,
			    "%s: invalid rectangle: %u units, %u x %u at row %u, column "
			    "%u of a device of %u x %u",
			    op, d->units, d->rows, d->cols, d->row, d->col, i->unit_rows,
			    i->unit_cols);
	if (i->colors != 0 &&
	    (d->color_mask == 0 || (i->colors < 64 && d->color_mask >> i->colors != 0)))
		return CORE(v, "%s: colours 0x%llx are invalid; the device has %u", op,
			    U64(d->color_mask), i->colors);
	if (d->wide_mask != 0 &&
	    ((i->caps & HAL_CAP_BIMODAL) == 0 || (d->color_mask & ~d->wide_mask) != 0 ||
	     (i->colors < 64 && d->wide_mask >> i->colors != 0)))
		return CORE(v,
			    "%s: colours 0x%llx of the second placement are invalid for "
			    "colours 0x%llx",
			    op, U64(d->wide_mask), U64(d->color_mask));
	for (uint32_t s = 0; s < v->handles.slot_count; s++) {
		for (struct handle *h = v->handles.slots[s]; h != NULL; h = h->next) {
			const struct tracked *p = container_of(h, struct tracked, h);

			if (h->kind != PART || !h->alive || p == self ||
			    p->desc.host != NULL)
				continue;
			if (p->desc.index != d->index && !overlap(&p->desc, d) &&
			    (p->target.units == 0 || !overlap(&p->target, d)))
				continue;
			tracked_describe(p, text, sizeof(text));
			return CORE(v, "%s: %s already has %s", op, text,
				    p->desc.index == d->index ? "that index"
							      : "some of the units");
		}
	}
	return 0;
}

/* Check a guest: its index follows those of other partitions, it has no units, and its
 * colours are a subset of its host's. */
static int check_guest_desc(struct validate *v, const struct layer_call *c)
{
	const struct hal_bk_partition_desc *d = c->desc;
	const struct hal_device_info *i = &v->info;
	const struct tracked *host = tracked_require(v, c, PART, d->host);

	if (host == NULL)
		return -EPROTO;
	if (d->index < i->partitions_max ||
	    d->index - i->partitions_max >= i->guests_max || d->units != 0)
		return CORE(v,
			    "partition_create: a guest has index %u (valid: %u to below "
			    "%u) and %u units (valid: 0)",
			    d->index, i->partitions_max,
			    i->partitions_max + i->guests_max, d->units);
	if (host->desc.host != NULL)
		return CORE(v,
			    "partition_create: the host of a guest, partition %u, is "
			    "itself a guest",
			    host->h.id);
	if ((d->color_mask & ~host->desc.color_mask) != 0 ||
	    (d->color_mask == 0 && i->colors != 0))
		return CORE(v,
			    "partition_create: the guest's colours 0x%llx are empty or "
			    "not all among its host's 0x%llx",
			    U64(d->color_mask), U64(host->desc.color_mask));
	return 0;
}

static int check_partition_create(struct validate *v, const struct layer_call *c)
{
	return c->desc->host != NULL ? check_guest_desc(v, c)
				     : check_desc(v, "partition_create", NULL, c->desc);
}

static int check_partition_destroy(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);
	char text[96];

	if (p == NULL)
		return -EPROTO;
	if (p->children == 0 && p->target.units == 0)
		return 0;
	tracked_describe(p, text, sizeof(text));
	return p->children != 0 ? CORE(v,
				       "partition_destroy: %s still has %u objects "
				       "(queues, buffers, bound programs)",
				       text, p->children)
				: CORE(v, "partition_destroy: %s is being moved", text);
}

static int check_resize(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if ((v->info.caps & (HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE)) == 0)
		return CORE(v, "resize: the device cannot resize partitions");
	if (p->target.units != 0)
		return CORE(v, "resize: partition %u is being moved already", p->h.id);
	if (c->desc->index != p->desc.index)
		return CORE(v, "resize: index %u was passed, but partition %u has %u",
			    c->desc->index, p->h.id, p->desc.index);
	return check_desc(v, "resize", p, c->desc);
}

static void got_isolation(struct validate *v, struct layer_call *c)
{
	if (c->result > HAL_ISOLATION_ENFORCED)
		(void)BACKEND(
			v, "isolation returned %lld, which is not in enum hal_isolation",
			(long long)c->result);
}

/* ---- queues and memory ------------------------------------------------------------ */

/* Mark t as destroyed, even if the backend will fail: the core never retries. */
static void forget(struct tracked *t)
{
	t->h.alive = false;
	if (t->parent != NULL)
		t->parent->children--;
}

static int check_queue_create(struct validate *v, const struct layer_call *c)
{
	return tracked_require(v, c, PART, c->part) != NULL ? 0 : -EPROTO;
}

static int check_queue_destroy(struct validate *v, const struct layer_call *c)
{
	const struct tracked *q = tracked_require(v, c, QUEUE, c->queue);

	if (q == NULL)
		return -EPROTO;
	if (q->uses != q->kept)
		return CORE(v,
			    "queue_destroy: queue %u still has %u commands on the device",
			    q->h.id, q->uses);
	if (q->stopping)
		return CORE(v, "queue_destroy: queue %u is being suspended", q->h.id);
	return 0;
}

/* Check the colours of memory in part: NULL if and only if the device has no colours. */
static int check_colors(struct validate *v, const struct layer_call *call,
			const struct tracked *part, const struct hal_bk_colors *c)
{
	const char *op = layer_op_names[call->op];
	uint64_t all = part->desc.color_mask;
	uint32_t parts = 0;

	if (v->info.colors == 0 || c == NULL)
		return v->info.colors == 0 && c == NULL
			       ? 0
			       : CORE(v, "%s: called %s colours, but the device has %u",
				      op, c != NULL ? "with" : "without", v->info.colors);
	if (c->mask == 0 || (c->mask & ~all) != 0)
		return CORE(v,
			    "%s: colours 0x%llx are empty or not all among the "
			    "partition's 0x%llx",
			    op, U64(c->mask), U64(all));
	if (c->weights == NULL)
		return 0;
	for (uint32_t i = 0; i < v->info.colors; i++)
		if ((c->mask >> i & 1) != 0)
			parts += c->weights[i];
	return parts != 0 ? 0
			  : CORE(v, "%s: the weights of colours 0x%llx are all 0", op,
				 U64(c->mask));
}

static int check_limit(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if (c->bytes != 0 && c->until_ns == 0)
		return CORE(v, "limit: %llu bytes for partition %u in a window of 0 ns",
			    U64(c->bytes), p->h.id);
	return 0;
}

static int check_mem_alloc(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if (c->bytes == 0)
		return CORE(v, "mem_alloc: 0 bytes");
	if (check_colors(v, c, p, c->colors) != 0)
		return -EPROTO;
	if ((c->flags & ~(HAL_BUFFER_MAPPABLE | HAL_BUFFER_EXPORTABLE |
			  HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH | HAL_BK_MEM_HOST)) !=
	    0)
		return CORE(v, "mem_alloc: unknown flags in 0x%x", c->flags);
	if ((c->flags & HAL_BK_MEM_HOST) != 0 && c->flags != HAL_BK_MEM_HOST)
		return CORE(v, "mem_alloc: host memory with flags 0x%x", c->flags);
	if ((c->flags & HAL_BUFFER_BIMODAL) != 0 && p->desc.wide_mask == 0)
		return CORE(v,
			    "mem_alloc: flags 0x%x ask for a bimodal buffer, but "
			    "partition %u has one placement",
			    c->flags, p->h.id);
	return 0;
}

static int check_mem_register(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if (c->bytes == 0 || c->data == NULL)
		return CORE(v, "mem_register: %llu bytes at %p", U64(c->bytes), c->data);
	return 0;
}

static int check_mem_import(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if (c->bytes == 0 || (int)c->index < 0 || (c->flags & ~HAL_BUFFER_MAPPABLE) != 0)
		return CORE(v, "mem_import: %llu bytes of descriptor %d, flags 0x%x",
			    U64(c->bytes), (int)c->index, c->flags);
	return 0;
}

static int check_mem_export(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL)
		return -EPROTO;
	return m->exportable ? 0
			     : CORE(v,
				    "mem_export: buffer %u was allocated without "
				    "HAL_BUFFER_EXPORTABLE",
				    m->h.id);
}

static void got_export(struct validate *v, struct layer_call *c)
{
	if (c->result == 0 && *c->fd < 0)
		c->result = BACKEND(v, "mem_export succeeded with descriptor %d", *c->fd);
}

/* Check that buffer m is not host memory, which only copies and mem_map take. */
static int check_not_host(struct validate *v, const struct layer_call *c,
			  const struct tracked *m)
{
	return m->host ? CORE(v, "%s: buffer %u is host memory", layer_op_names[c->op],
			      m->h.id)
		       : 0;
}

static int fail_in_use(struct validate *v, const struct layer_call *c,
		       const struct tracked *m)
{
	return CORE(v, "%s: %u commands on the device use buffer %u",
		    layer_op_names[c->op], m->uses, m->h.id);
}

/* Check that buffer m is not evicted. */
static int check_resident(struct validate *v, const struct layer_call *c,
			  const struct tracked *m)
{
	return m->out ? CORE(v, "%s: buffer %u is evicted (mem_out)",
			     layer_op_names[c->op], m->h.id)
		      : 0;
}

static int check_mem_free(struct validate *v, const struct layer_call *c)
{
	struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL)
		return -EPROTO;
	if (m->uses != 0)
		return fail_in_use(v, c, m);
	if (m->mapped && !m->host)
		return CORE(v, "mem_free: buffer %u is mapped", m->h.id);
	forget(m);
	return 0;
}

static int check_colors_set(struct validate *v, const struct layer_call *c)
{
	if (c->index == 0 || c->index > HAL_BK_COLORS_MAX)
		return CORE(v, "colors_set: %u colours; valid are 1 to %d", c->index,
			    HAL_BK_COLORS_MAX);
	return 0;
}

/* After colors_set, get_info may describe the device differently: forget the last
 * description. */
static void got_colors_set(struct validate *v, struct layer_call *c)
{
	if (c->result == 0)
		v->has_info = false;
}

static int check_mem_swap(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);
	const struct tracked *o = m != NULL ? tracked_require(v, c, MEM, c->other) : NULL;

	if (o == NULL)
		return -EPROTO;
	if (check_resident(v, c, m) != 0 || check_resident(v, c, o) != 0)
		return -EPROTO;
	if (m->uses != 0 || o->uses != 0)
		return fail_in_use(v, c, m->uses != 0 ? m : o);
	if (m->mapped || o->mapped)
		return CORE(v, "mem_swap: buffer %u is mapped",
			    m->mapped ? m->h.id : o->h.id);
	if (m == o || m->parent != o->parent || m->bytes != o->bytes)
		return CORE(v,
			    "mem_swap: cannot swap buffer %u (%llu bytes, partition %u) "
			    "with buffer %u (%llu bytes, partition %u)",
			    m->h.id, U64(m->bytes), m->parent->h.id, o->h.id,
			    U64(o->bytes), o->parent->h.id);
	return 0;
}

static int check_partition_widen(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PART, c->part);

	if (p == NULL)
		return -EPROTO;
	if (p->desc.wide_mask == 0)
		return CORE(v, "partition_widen: partition %u has one placement",
			    p->h.id);
	if (p->wide == (c->index != 0))
		return CORE(v, "partition_widen: partition %u is %s already", p->h.id,
			    p->wide ? "wide" : "narrow");
	for (uint32_t s = 0; s < v->handles.slot_count; s++) {
		for (struct handle *h = v->handles.slots[s]; h != NULL; h = h->next) {
			const struct tracked *q = container_of(h, struct tracked, h);

			if (h->kind == QUEUE && h->alive && q->parent == p &&
			    q->uses != 0)
				return CORE(v,
					    "partition_widen: the device still has %u "
					    "commands of queue %u",
					    q->uses, q->h.id);
		}
	}
	return 0;
}

static void got_widened(struct validate *v, struct layer_call *c)
{
	if (c->result == 0)
		tracked_find(v, PART, (uintptr_t)c->part)->wide = c->index != 0;
}

static int check_mem_out(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL || check_resident(v, c, m) != 0 || check_not_host(v, c, m) != 0)
		return -EPROTO;
	if (m->uses != 0)
		return fail_in_use(v, c, m);
	if (m->mapped || m->flagged)
		return CORE(v, "mem_out: buffer %u %s", m->h.id,
			    m->mapped ? "is mapped" : "was allocated with flags");
	return 0;
}

static int check_mem_in(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL)
		return -EPROTO;
	if (!m->out)
		return CORE(v, "mem_in: buffer %u is not evicted (mem_out)", m->h.id);
	return check_colors(v, c, m->parent, c->colors);
}

/* Record the result of mem_out or mem_in. */
static void got_place(struct validate *v, struct layer_call *c)
{
	if (c->result == 0)
		tracked_find(v, MEM, (uintptr_t)c->mem)->out = c->op == CALL_mem_out;
}

static int check_mem_clear(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL || check_resident(v, c, m) != 0 || check_not_host(v, c, m) != 0)
		return -EPROTO;
	return m->uses != 0 ? fail_in_use(v, c, m) : 0;
}

/* Check mem_map or mem_unmap. */
static int check_mapping(struct validate *v, const struct layer_call *c)
{
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL || check_resident(v, c, m) != 0 ||
	    (c->op == CALL_mem_unmap && check_not_host(v, c, m) != 0))
		return -EPROTO;
	if (m->mapped == (c->op == CALL_mem_map))
		return CORE(v, "%s: buffer %u is%s mapped", layer_op_names[c->op],
			    m->h.id, m->mapped ? "" : " not");
	return 0;
}

/* Check mem_write or mem_read. */
static int check_transfer(struct validate *v, const struct layer_call *c)
{
	const char *op = layer_op_names[c->op];
	const struct tracked *m = tracked_require(v, c, MEM, c->mem);

	if (m == NULL || check_resident(v, c, m) != 0 || check_not_host(v, c, m) != 0)
		return -EPROTO;
	if (c->offset > m->bytes || c->bytes > m->bytes - c->offset)
		return CORE(
			v, "%s: %llu bytes at offset %llu exceed buffer %u of %llu bytes",
			op, U64(c->bytes), U64(c->offset), m->h.id, U64(m->bytes));
	if (c->data == NULL && c->bytes != 0)
		return CORE(v, "%s: data is NULL", op);
	return 0;
}

static void got_mapping(struct validate *v, struct layer_call *c)
{
	if (c->result == 0 && *c->out == NULL)
		c->result = BACKEND(v, "mem_map returned success without an address");
	else if (c->result == 0)
		tracked_find(v, MEM, (uintptr_t)c->mem)->mapped = true;
}

static void got_unmapped(struct validate *v, struct layer_call *c)
{
	tracked_find(v, MEM, (uintptr_t)c->mem)->mapped = false;
}

/* ---- programs --------------------------------------------------------------------- */

static void remove_binding(struct tracked *prog, const struct tracked *part)
{
	for (struct binding **at = &prog->bindings; *at != NULL; at = &(*at)->next) {
		struct binding *b = *at;

		if (b->part != part)
			continue;
		*at = b->next;
		free(b);
		return;
	}
}

static void free_bindings(struct tracked *prog)
{
	while (prog->bindings != NULL) {
		struct binding *next = prog->bindings->next;

		free(prog->bindings);
		prog->bindings = next;
	}
}

static int check_load(struct validate *v, const struct layer_call *c)
{
	if (c->data == NULL || c->bytes == 0)
		return CORE(v, "program_load: the image is NULL or empty (%llu bytes)",
			    U64(c->bytes));
	return 0;
}

static int check_kernel_get(struct validate *v, const struct layer_call *c)
{
	return tracked_require(v, c, PROG, c->prog) != NULL ? 0 : -EPROTO;
}

/* Check that no command on the device uses program p.  uses: number of commands that do.
 */
static int check_unused(struct validate *v, const struct layer_call *c,
			const struct tracked *p, uint32_t uses)
{
	if (uses != 0)
		return CORE(v, "%s: %u commands on the device use program %u",
			    layer_op_names[c->op], uses, p->h.id);
	return 0;
}

static int check_unload(struct validate *v, const struct layer_call *c)
{
	const struct tracked *p = tracked_require(v, c, PROG, c->prog);

	if (p == NULL || check_unused(v, c, p, p->uses) != 0)
		return -EPROTO;
	if (p->bindings != NULL)
		return CORE(v,
			    "program_unload: program %u is still bound to partition %u",
			    p->h.id, p->bindings->part->h.id);
	return 0;
}

/* Check program_bind or program_unbind. */
static int check_binding(struct validate *v, const struct layer_call *c)
{
	bool bind = c->op == CALL_program_bind;
	const struct tracked *p = tracked_require(v, c, PROG, c->prog);
	const struct tracked *part = tracked_require(v, c, PART, c->part);
	const struct binding *b;

	if (p == NULL || part == NULL)
		return -EPROTO;
	b = tracked_binding(p, part);
	if (!bind && b != NULL && check_unused(v, c, p, b->uses) != 0)
		return -EPROTO;
	if ((b != NULL) == bind)
		return CORE(v, "%s: program %u is%s bound to partition %u",
			    layer_op_names[c->op], p->h.id, bind ? " already" : " not",
			    part->h.id);
	return 0;
}

static void got_kernel(struct validate *v, struct layer_call *c)
{
	const struct hal_bk_kernel_info *k = c->kernel;
	struct tracked *t, *old;

	if (c->result != 0)
		return;
	/* A repeated call for the same kernel may return the same handle. */
	old = tracked_find(v, KERNEL, (uintptr_t)*c->out);
	if (old != NULL && old->h.alive && old->parent->h.key == (uintptr_t)c->prog)
		old->h.alive = false;
	t = tracked_new(v, c, KERNEL);
	if (t == NULL)
		return;
	t->parent = tracked_find(v, PROG, (uintptr_t)c->prog);
	if (memchr(k->name, '\0', sizeof(k->name)) == NULL || k->name[0] == '\0')
		c->result = BACKEND(
			v, "kernel_get: the name of kernel %u is empty or not terminated",
			c->index);
	else if (k->arg_count > HAL_ARGS_MAX)
		c->result = BACKEND(v, "kernel %s takes %u arguments; the limit is %d",
				    k->name, k->arg_count, HAL_ARGS_MAX);
	else if (k->group_size_max != 0 &&
		 (uint64_t)k->group_size[0] * k->group_size[1] * k->group_size[2] >
			 k->group_size_max)
		c->result = BACKEND(v,
				    "kernel %s has groups of %u x %u x %u, more than the "
				    "%u work items that a launch may set",
				    k->name, k->group_size[0], k->group_size[1],
				    k->group_size[2], k->group_size_max);
	else if ((k->engines & ~(HAL_BK_ENGINE_ARRAY | HAL_BK_ENGINE_VECTOR)) != 0)
		c->result = BACKEND(v, "kernel %s: unknown engines in 0x%x", k->name,
				    k->engines);
	if (c->result != 0) {
		t->h.alive = false;
		return;
	}
	t->arg_count = k->arg_count;
	memcpy(t->arg_bytes, k->arg_bytes, sizeof(t->arg_bytes));
	t->group_size_max = k->group_size_max;
	t->shared_max = k->shared_max;
}

static void got_bind(struct validate *v, struct layer_call *c)
{
	struct tracked *prog = tracked_find(v, PROG, (uintptr_t)c->prog);
	struct tracked *part = tracked_find(v, PART, (uintptr_t)c->part);
	struct binding *b = v->spare;

	if (c->result != 0)
		return;
	v->spare = NULL;
	b->part = part;
	b->uses = 0;
	b->next = prog->bindings;
	prog->bindings = b;
	part->children++;
}

static void got_unbind(struct validate *v, struct layer_call *c)
{
	struct tracked *part = tracked_find(v, PART, (uintptr_t)c->part);

	remove_binding(tracked_find(v, PROG, (uintptr_t)c->prog), part);
	part->children--;
}

/* Mark the kernels of an unloaded program as destroyed. */
static void got_unload(struct validate *v, struct tracked *prog)
{
	free_bindings(prog);
	for (uint32_t i = 0; i < v->handles.slot_count; i++)
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next)
			if (h->kind == KERNEL &&
			    container_of(h, struct tracked, h)->parent == prog)
				h->alive = false;
}

/* ---- the device ------------------------------------------------------------------- */

static void got_device(struct validate *v, struct layer_call *c)
{
	if (c->result == 0 && *c->out == NULL)
		c->result = BACKEND(v, "open returned success without a device");
}

static bool is_terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static int check_returned_info(struct validate *v, const struct hal_device_info *i)
{
	if (i->size != sizeof(*i))
		return BACKEND(v, "get_info changed .size to %u; it must stay %zu",
			       i->size, sizeof(*i));
	if (!is_terminated(i->backend, sizeof(i->backend)) ||
	    !is_terminated(i->name, sizeof(i->name)) ||
	    !is_terminated(i->bus_id, sizeof(i->bus_id)))
		return BACKEND(v, "get_info: a text is not terminated");
	if (i->kind > HAL_KIND_NPU || i->preempt > HAL_PREEMPT_INSIDE ||
	    i->compute_isolation > HAL_ISOLATION_ENFORCED ||
	    i->memory_isolation > HAL_ISOLATION_ENFORCED ||
	    i->suspend_modes >> (HAL_SUSPEND_KILL + 1) != 0)
		return BACKEND(
			v,
			"get_info: an unknown value in: kind %u, preempt %u, compute "
			"isolation %u, memory isolation %u, suspend modes 0x%x",
			i->kind, i->preempt, i->compute_isolation, i->memory_isolation,
			i->suspend_modes);
	if (i->caps >= HAL_CAP_IMPORT << 1 || (i->verified & ~i->caps) != 0)
		return BACKEND(v,
			       "get_info: unknown bits in caps 0x%llx, or bits of "
			       "verified 0x%llx that caps lacks",
			       U64(i->caps), U64(i->verified));
	if (i->lost != 0)
		return BACKEND(
			v,
			"get_info: lost is %d; a backend reports a loss only from poll",
			i->lost);
	if (i->memory_bytes != 0 && i->memory_free > i->memory_bytes)
		return BACKEND(v, "get_info: %llu bytes free of %llu",
			       U64(i->memory_free), U64(i->memory_bytes));
	if (v->has_info &&
	    (i->unit_rows != v->info.unit_rows || i->unit_cols != v->info.unit_cols ||
	     i->partitions_max != v->info.partitions_max || i->colors != v->info.colors ||
	     i->caps != v->info.caps))
		return BACKEND(
			v,
			"get_info describes a different device than its previous call");
	return 0;
}

static int check_info(struct validate *v, const struct layer_call *c)
{
	if (c->info->size != sizeof(*c->info))
		return CORE(v, "get_info: .size is %u; it must be %zu", c->info->size,
			    sizeof(*c->info));
	return 0;
}

static void got_info(struct validate *v, struct layer_call *c)
{
	struct hal_device_info info;
	int err;

	if (c->result != 0)
		return;
	info = *c->info;
	/* 0 rows mean a single line of units; the core treats them as 1. */
	if (info.unit_rows == 0)
		info.unit_rows = 1;
	err = check_returned_info(v, &info);
	if (err != 0) {
		c->result = err;
		return;
	}
	v->info = info;
	v->has_info = true;
}

static void got_now(struct validate *v, struct layer_call *c)
{
	uint64_t now = (uint64_t)c->result;

	if (now < c->until_ns)
		(void)BACKEND(v, "time went back from %llu to %llu ns", U64(c->until_ns),
			      U64(now));
	if (now < v->reach_ns)
		(void)BACKEND(v,
			      "poll until %llu ns on an idle device left time at %llu ns",
			      U64(v->reach_ns), U64(now));
	v->reach_ns = 0;
}

static int check_counters(struct validate *v, const struct layer_call *c)
{
	return c->max != 0 ? 0 : CORE(v, "counters: called with space for 0 counters");
}

static void got_counters(struct validate *v, struct layer_call *c)
{
	const struct hal_device_info *info = &v->info;

	if (c->result > (int64_t)c->max) {
		c->result =
			BACKEND(v, "counters returned %lld, but there was space for %u",
				(long long)c->result, c->max);
		return;
	}
	for (int64_t i = 0; i < c->result; i++) {
		const struct hal_bk_counter *n = &c->counters[i];
		uint32_t most = n->kind == HAL_BK_UNIT_NS ? info->partitions_max : 64;

		if (n->kind <= HAL_BK_CHANNEL_BYTES && n->index < most)
			continue;
		c->result =
			BACKEND(v, "counters: there is no counter of kind %u, index %u",
				n->kind, n->index);
		return;
	}
}

static int check_poll(struct validate *v, const struct layer_call *c)
{
	return c->max != 0 ? 0 : CORE(v, "poll: called with space for 0 events");
}

static int check_close(struct validate *v, const struct layer_call *c)
{
	char text[300];
	uint32_t n = tracked_living(v, v->report, text, sizeof(text));

	(void)c;
	if (n != 0)
		(void)CORE(v, "close: %u object(s) still alive: %s", n, text);
	if (v->owed != 0)
		(void)BACKEND(
			v, "close: %u command(s), suspend(s) or move(s) have not ended",
			v->owed);
	return 0; /* close even if rules were broken */
}

/* ---- creating and destroying objects ----------------------------------------------- */

/* The kind of object that an operation creates or destroys. */
static const enum kind kinds[LAYER_OP_COUNT] = {
	[CALL_partition_create] = PART, [CALL_partition_destroy] = PART,
	[CALL_queue_create] = QUEUE,    [CALL_queue_destroy] = QUEUE,
	[CALL_mem_alloc] = MEM,         [CALL_mem_free] = MEM,
	[CALL_program_load] = PROG,     [CALL_program_unload] = PROG,
	[CALL_mem_register] = MEM,      [CALL_mem_import] = MEM,
};

static void got_object(struct validate *v, struct layer_call *c)
{
	struct tracked *t = tracked_new(v, c, kinds[c->op]);

	if (t == NULL)
		return;
	if (t->h.kind == PART)
		t->desc = *c->desc;
	t->bytes = c->bytes;
	t->flagged = c->flags != 0 || c->op == CALL_mem_import;
	t->exportable = (c->flags & HAL_BUFFER_EXPORTABLE) != 0;
	t->host = (c->flags & HAL_BK_MEM_HOST) != 0;
	if (c->part == NULL)
		return;
	t->parent = tracked_find(v, PART, (uintptr_t)c->part);
	t->parent->children++;
}

/* Note a failed mem_free.  check_mem_free has marked the buffer as destroyed: during the
 * call another thread's mem_alloc may have returned the same handle. */
static void got_freed(struct validate *v, struct layer_call *c)
{
	struct tracked *t = tracked_find(v, MEM, (uintptr_t)c->mem);

	if (!t->h.alive)
		t->destroy_failed = c->result != 0;
}

/* Mark an object as destroyed. */
static void got_destroyed(struct validate *v, struct layer_call *c)
{
	const void *const handles[] = {
		[PART] = c->part, [QUEUE] = c->queue, [MEM] = c->mem, [PROG] = c->prog};
	enum kind kind = kinds[c->op];
	struct tracked *t = tracked_find(v, kind, (uintptr_t)handles[kind]);

	forget(t);
	t->destroy_failed = c->result != 0;
	if (kind == PROG)
		got_unload(v, t);
}

static void got_destroyed_if_ok(struct validate *v, struct layer_call *c)
{
	if (c->result == 0)
		got_destroyed(v, c);
}

static void got_queue_destroyed(struct validate *v, struct layer_call *c)
{
	validated_queue_destroy(v, c);
	got_destroyed_if_ok(v, c);
}

/* ---- the operations ---------------------------------------------------------------- */

/* The checks of an operation, before and after the backend executes it; either may be
 * NULL. */
struct op {
	int (*before)(struct validate *v, const struct layer_call *c);
	void (*after)(struct validate *v, struct layer_call *c);
	uint32_t traits;
};

enum {
	MAKES = 1u << 0,  /* adds a tracked object or a binding */
	HOT = 1u << 1,    /* not allowed after the loss of the device */
	VALUE = 1u << 2,  /* returns something else than 0 or -errno */
	COUNTS = 1u << 3, /* returns a count or -errno */
};

static const struct op ops[LAYER_OP_COUNT] = {
	[CALL_open] = {NULL, got_device, 0},
	[CALL_close] = {check_close, NULL, VALUE},
	[CALL_get_info] = {check_info, got_info, 0},
	[CALL_partition_create] = {check_partition_create, got_object, MAKES},
	[CALL_partition_destroy] = {check_partition_destroy, got_destroyed_if_ok, 0},
	[CALL_queue_create] = {check_queue_create, got_object, MAKES},
	[CALL_queue_destroy] = {check_queue_destroy, got_queue_destroyed, 0},
	[CALL_mem_alloc] = {check_mem_alloc, got_object, MAKES},
	[CALL_mem_free] = {check_mem_free, got_freed, 0},
	[CALL_mem_write] = {check_transfer, NULL, 0},
	[CALL_mem_read] = {check_transfer, NULL, 0},
	[CALL_mem_map] = {check_mapping, got_mapping, 0},
	[CALL_mem_unmap] = {check_mapping, got_unmapped, 0},
	[CALL_mem_swap] = {check_mem_swap, NULL, 0},
	[CALL_program_load] = {check_load, got_object, MAKES},
	[CALL_program_unload] = {check_unload, got_destroyed, 0},
	[CALL_kernel_get] = {check_kernel_get, got_kernel, MAKES},
	[CALL_program_bind] = {check_binding, got_bind, MAKES},
	[CALL_program_unbind] = {check_binding, got_unbind, 0},
	[CALL_extension] = {NULL, NULL, VALUE},
	[CALL_isolation] = {NULL, got_isolation, VALUE},
	[CALL_counters] = {check_counters, got_counters, COUNTS},
	[CALL_partition_widen] = {check_partition_widen, got_widened, 0},
	[CALL_mem_out] = {check_mem_out, got_place, 0},
	[CALL_mem_in] = {check_mem_in, got_place, 0},
	[CALL_mem_clear] = {check_mem_clear, NULL, 0},
	[CALL_mem_register] = {check_mem_register, got_object, MAKES},
	[CALL_mem_export] = {check_mem_export, got_export, 0},
	[CALL_mem_import] = {check_mem_import, got_object, MAKES},
	[CALL_colors_set] = {check_colors_set, got_colors_set, 0},
	[CALL_submit] = {validate_submit, validated_submit, MAKES | HOT},
	[CALL_poll] = {check_poll, validated_poll, COUNTS | HOT},
	[CALL_now] = {NULL, got_now, VALUE},
	[CALL_suspend] = {validate_suspend, validated_suspend, MAKES | HOT},
	[CALL_resume] = {validate_resume, validated_resume, HOT},
	[CALL_resize] = {check_resize, validated_resize, MAKES | HOT},
	[CALL_event_fd] = {NULL, NULL, COUNTS},
	[CALL_next] = {NULL, NULL, VALUE},
	[CALL_doorbell] = {NULL, NULL, VALUE | HOT},
	[CALL_limit] = {check_limit, NULL, HOT},
};

/* Reserve memory for the entries that the call may add: after the backend has executed
 * the call, it is too late to refuse it. */
static int reserve(struct validate *v, const struct layer_call *c)
{
	if (handles_reserve(&v->handles) != 0)
		return fail(ENOMEM, "no memory for layer validate");
	if (c->op != CALL_program_bind || v->spare != NULL)
		return 0;
	v->spare = malloc(sizeof(*v->spare));
	return v->spare != NULL ? 0 : fail(ENOMEM, "no memory for layer validate");
}

static int validate_before(void *state, const struct layer_call *c)
{
	const struct op *op = &ops[c->op];
	struct validate *v = state;
	int err = (op->traits & MAKES) != 0 ? reserve(v, c) : 0;

	if (err != 0)
		return err;
	if (v->lost && (op->traits & HOT) != 0)
		return CORE(v, "%s: the device is lost", layer_op_names[c->op]);
	return op->before != NULL ? op->before(v, c) : 0;
}

static void validate_after(void *state, struct layer_call *c)
{
	const struct op *op = &ops[c->op];
	struct validate *v = state;

	if ((op->traits & VALUE) == 0 &&
	    (c->result < -4095 || (c->result > 0 && (op->traits & COUNTS) == 0)))
		c->result = BACKEND(v, "%s returned the invalid result %lld",
				    layer_op_names[c->op], (long long)c->result);
	if (op->after != NULL)
		op->after(v, c);
}

/* ---- opening and closing ---------------------------------------------------------- */

static void validate_free(struct validate *v)
{
	for (uint32_t i = 0; i < v->handles.slot_count; i++)
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next)
			free_bindings(container_of(h, struct tracked, h));
	handles_fini(&v->handles);
	free(v->spare);
	if (v->report != NULL)
		(void)fclose(v->report);
	free(v);
}

static int validate_create(struct layers *l, const struct hal_bk_config *cfg,
			   void **state)
{
	char path[OUTPUT_BYTES];
	struct validate *v;
	int err;

	if (option_int(cfg, "validate") == 0)
		return 0;
	err = output_name("layers.report", option_str(cfg, "report"), l->dev->number,
			  path);
	if (err != 0)
		return err;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return fail(ENOMEM, "no memory for layer validate");
	v->layers = l;
	if (handles_init(&v->handles, sizeof(struct tracked)) != 0) {
		free(v);
		return fail(ENOMEM, "no memory for layer validate");
	}
	if (path[0] != '\0') {
		v->report = fopen(path, "ae");
		if (v->report == NULL) {
			err = fail(errno, "[layers] report: cannot open %s: %s", path,
				   hal_strerror(errno));
			validate_free(v);
			return err;
		}
		(void)setvbuf(v->report, NULL, _IOLBF, BUFSIZ);
	}
	*state = v;
	return 0;
}

static int validate_destroy(void *state)
{
	struct validate *v = state;
	int err = 0;

	if (v->violations != 0)
		err = fail(
			EPROTO, "%s%s", v->first_violation,
			v->violations > 1
				? " (and more; set layers.report to a file to list all)"
				: "");
	validate_free(v);
	return err;
}

const struct layer_type layer_validate = {
	.name = "validate",
	.create = validate_create,
	.destroy = validate_destroy,
	.before = validate_before,
	.after = validate_after,
};

void validate_living(const struct layers *l, char *text, size_t size)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->at[i].type == &layer_validate)
			(void)tracked_living(l->at[i].state, NULL, text, size);
}
