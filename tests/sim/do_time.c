/* SPDX-License-Identifier: Apache-2.0 */
/* do_time.c - operations that let time pass, or look at what has come of it. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>

#include "sim.h"

enum { REGISTER_NS = 2000, LONG_NS = 300000 };

int do_poll(struct sim *s, const uint32_t *p)
{
	enum { NS, LONG };
	uint64_t before = hal_device_get_time(s->dev), now;
	uint64_t ns = p[LONG] == 31 ? (uint64_t)p[NS] * LONG_NS / 4000 : p[NS];
	int n = hal_device_poll(s->dev, ns);

	SIM_CHECK(n >= 0 || s->faulty);
	/* The NPU's clock runs while its registers are accessed: what begins or ends in
	 * the last moment takes the poll a little past its end.  So do calls of others
	 * during which time passes. */
	now = hal_device_get_time(s->dev);
	if (!s->faulty && !s->script->shared &&
	    now > before + ns + (s->ref ? 0 : REGISTER_NS))
		return sim_fail(s, __FILE__, __LINE__,
				"polled %" PRIu64 " ns for %" PRIu64, now - before, ns);
	sim_mix(s, (uint64_t)n);
	return 0;
}

int do_wait(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, ON, LOOK };
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);
	struct hal_point point;
	bool can;
	int err;

	if (!q || !q->submissions)
		return 0;
	point = (struct hal_point){hal_queue_get_timeline(q->q),
				   1 + p[ON] % q->submissions};
	can = model_can_end(s, q, point.value) && !q->tainted && !s->faulty;
	if (p[LOOK]) {
		err = hal_wait(&point, 1, 0, 0);
		SIM_ANSWER(!err || err == -ETIMEDOUT || q->tainted || s->faulty);
	} else {
		err = sim_wait(point);
		SIM_ANSWER(!err || (err == -EDEADLK && !can) || q->tainted || s->faulty);
	}
	sim_mix(s, (uint64_t)(int64_t)err);
	if (!err)
		SIM_CHECK(hal_timeline_get_value(point.timeline, NULL) >= point.value);
	return 0;
}

int do_open_gate(struct sim *s, const uint32_t *p)
{
	uint32_t g = p[0];

	SIM_OK(hal_timeline_signal(s->gates[g], ++s->gate_value[g]));
	SIM_CHECK(hal_timeline_get_value(s->gates[g], NULL) == s->gate_value[g]);
	return 0;
}

static bool device_lost(struct sim *s)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	return hal_device_get_info(s->dev, &info) == 0 && info.lost != 0;
}

/* Its fd is readable exactly while there is something to read; of a lost device for good,
 * since the end of all entries is an answer, too. */
int do_read(struct sim *s, const uint32_t *p)
{
	struct hal_completion out[RING];
	struct pollfd fd = {.fd = hal_completions_get_fd(s->ring), .events = POLLIN};
	uint32_t max = 1 + p[0];
	bool readable = poll(&fd, 1, 0) == 1;
	int n = 0;

	/* Reading of nothing would let time pass. */
	if (readable)
		n = hal_completions_read(s->ring, out, max, 0);
	if (n == -ENODEV) {
		SIM_CHECK(device_lost(s));
		return 0;
	}
	SIM_CHECK(readable ? n > 0 && (uint32_t)n <= max : n == 0);
	for (int i = 0; i < n; i++)
		if (model_told(s, &out[i]))
			return -1;
	SIM_CHECK((uint32_t)n == max || poll(&fd, 1, 0) == 0 || device_lost(s));
	return 0;
}

/* One creation that the device fails. */
int do_inject(struct sim *s, const uint32_t *p)
{
	enum { WHAT, NTH, PART, UNITS };
	static const struct {
		uint32_t op;
		int err;
		sim_operation *fn;
	} what[] = {
		{HAL_REF_OP_PARTITION_CREATE, ENOMEM, do_part_create},
		{HAL_REF_OP_QUEUE_CREATE, ENOMEM, do_queue_create},
		{HAL_REF_OP_MEM_ALLOC, ENOMEM, do_queue_create},
		{HAL_REF_OP_MEM_ALLOC, ENOMEM, do_new_buffer},
	};
	const uint32_t q[SIM_PARAMS] = {p[PART]}, u[SIM_PARAMS] = {p[UNITS]};
	uint32_t k = p[WHAT] % (sizeof(what) / sizeof(*what));
	int err;

	if (!s->ref)
		return 0;
	SIM_OK(s->ref->inject(hal_device_get_native(s->dev), what[k].op, 1 + p[NTH],
			      what[k].err));
	s->injected = true;
	err = what[k].fn(s, what[k].fn == do_part_create ? u : q);
	s->injected = false;
	SIM_OK(s->ref->inject(hal_device_get_native(s->dev), what[k].op, 0, 0));
	return err;
}
