/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - submissions with points of other devices. */
#include "api/crossing.h"

#include <stdlib.h>

#include "api/submit.h"

/* NOLINTBEGIN(clang-analyzer-core.NullDereference): no array, no entries */
void crossing_start(const struct crossing *x)
{
	for (uint32_t i = 0; i < x->count; i++)
		foreign_start(x->foreign[i]);
}

void crossing_end(struct crossing *x, bool started)
{
	for (uint32_t i = 0; i < x->count && !started; i++)
		foreign_cancel(x->foreign[i]);
	free(x->waits);
	free(x->foreign);
}

/* Add the wait p, waits[i] of a submission to q, to x. */
static int add_wait(const struct hal_queue *q, struct crossing *x,
		    const struct hal_point *p, uint32_t i)
{
	int err = points_check(q, p, 1, "waits", false);
	struct foreign *f;

	if (err == 0) {
		x->waits[x->d.wait_count++] = *p;
		return 0;
	}
	if (err != CROSSING)
		return submit_point_bad(q, p, "waits", i);
	if (timeline_test(p->timeline, p->value) > 0)
		return 0;
	f = foreign_make(q->dev, p);
	if (f == NULL)
		return -ENOMEM;
	x->foreign[x->count++] = f;
	return 0;
}

/* NOLINTEND(clang-analyzer-core.NullDereference) */

int crossing_make(const struct hal_queue *q, const struct hal_submit_desc *d,
		  struct crossing *x)
{
	int err = submit_shape_bad(d);

	if (err == 0 && (d->deadline_ns | d->not_before_ns) != 0)
		err = submit_times_check(q, d);
	for (uint32_t i = 0; err == 0 && i < d->signal_count; i++) {
		err = points_check(q, &d->signals[i], 1, "signals", true);
		if (err != 0)
			err = submit_point_bad(q, &d->signals[i], "signals", i);
		if (err == CROSSING)
			err = 0;
	}
	if (err != 0)
		return err;
	*x = (struct crossing){.d = *d};
	x->d.wait_count = 0;
	x->waits = calloc((size_t)d->wait_count + 1, sizeof(*x->waits));
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
	x->foreign = calloc((size_t)d->wait_count + 1, sizeof(struct foreign *));
	if (x->waits == NULL || x->foreign == NULL)
		err = fail(ENOMEM, "no memory for %u waits", d->wait_count);
	for (uint32_t i = 0; err == 0 && i < d->wait_count; i++)
		err = add_wait(q, x, &d->waits[i], i);
	x->d.waits = x->waits;
	if (err != 0)
		crossing_end(x, false);
	return err;
}

void crossing_write(const struct crossing *x, struct record_target *to)
{
	for (uint32_t i = 0; i < x->count; i++) {
		struct record *r = target_next(to, 1);

		write_common(r, REC_FOREIGN, 0, 1, to->own, to->now);
		r->point[0] = (struct hal_point){&x->foreign[i]->line, 1};
		r->point[1].timeline = NULL;
	}
}
