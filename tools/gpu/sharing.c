/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c - hal-gpu-measure: a tenant's launches beside another's that is always busy.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "measure.h"

enum { OUTSTANDING = 4 };

/* A tenant that has always so many launches in its queue: of about 1 ms, or with .big of
 * as many sums as go through that. */
struct busy {
	const struct tenant *t;
	struct hal_buffer *big;
	uint64_t rounds;
	uint32_t blocks, ended;
	struct hal_point at[OUTSTANDING];
	bool there[OUTSTANDING];
};

static struct busy busy_as(const struct tenant *t)
{
	struct busy b = {.t = t, .rounds = rounds_among(t, 100000)};

	b.blocks = blocks_of(t, b.rounds, 1000000);
	return b;
}

/* Memory is all that it waits for: 128 MiB of it. */
static struct hal_point sums(const struct tenant *t, struct hal_buffer *big)
{
	struct hal_arg args[] = {{.buffer = big},
				 {.buffer = big},
				 {.buffer = big},
				 {.offset = (uint64_t)LONG * GPU_BLOCK}};

	return gpu_launch(t->queue, t->gpu->program, "vector_add", args, 4, LONG);
}

/* Other launches in place of those that have ended. */
static void keep_busy(struct busy *b)
{
	uint32_t i;

	for (i = 0; i < OUTSTANDING; i++) {
		if (b->there[i]) {
			const int err = hal_wait(&b->at[i], 1, 0, 0);

			if (err == -ETIMEDOUT)
				continue;
			TRY(err);
			b->ended++;
		}
		b->at[i] = b->big ? sums(b->t, b->big) : spin(b->t, b->rounds, b->blocks);
		b->there[i] = true;
	}
}

static void let_end(struct busy *b)
{
	uint32_t i;

	for (i = 0; i < OUTSTANDING; i++)
		if (b->there[i])
			wait_for(b->at[i]);
	memset(b->there, 0, sizeof(b->there));
}

/* Launches a second. */
static void say_rate(const char *text, const char *name, const struct busy *b,
		     uint64_t begin)
{
	const double rate = b->ended * 1e9 / (double)(now_ns() - begin);

	printf("%s | %.1f launches a second of %u blocks\n", text, rate, b->blocks);
	figure(name, "per_s", rate);
}

static void rate_alone(const char *text, const char *name, struct busy *b)
{
	const uint64_t begin = now_ns();

	b->ended = 0;
	while (now_ns() - begin < UINT64_C(1000000) * times) {
		keep_busy(b);
		(void)hal_wait(b->at, OUTSTANDING, HAL_WAIT_ANY,
			       (int64_t)now_ns() + 1000000);
	}
	say_rate(text, name, b, begin);
	let_end(b);
}

/* Launches of t, beside or with other NULL alone. */
static void time_beside(const char *text, const char *name, const struct tenant *t,
			struct hal_point (*launch)(const struct tenant *t),
			struct busy *other, uint64_t budget_ns)
{
	const uint64_t start = now_ns();
	static uint64_t took[TIMES_MOST];
	uint32_t n = 0;

	if (other)
		other->ended = 0;
	while (n < times && now_ns() - start < budget_ns) {
		struct hal_point done;
		uint64_t begin;
		int err;

		if (other)
			keep_busy(other);
		begin = now_ns();
		done = launch(t);
		while ((err = hal_wait(&done, 1, 0, (int64_t)now_ns() + 1000000)) ==
		       -ETIMEDOUT) {
			if (now_ns() - begin > UINT64_C(2000000000)) {
				printf("%s | has waited for 2 s, %u before have ended\n",
				       text, n);
				return;
			}
			if (other)
				keep_busy(other);
		}
		TRY(err);
		took[n++] = now_ns() - begin;
	}
	(void)say(text, name, took, n);
	if (other) {
		char of[128], rate[64];

		(void)snprintf(of, sizeof(of), "%s: the other tenant", text);
		(void)snprintf(rate, sizeof(rate), "%s_other", name);
		say_rate(of, rate, other, start);
	}
}

/* A launch of one block and a wide one. */
static void both(const char *text, const char *name, const struct tenant *t,
		 struct busy *other)
{
	char of[128], wide[64];

	time_beside(text, name, t, add, other, UINT64_C(4000000000));
	if (other)
		let_end(other);
	(void)snprintf(of, sizeof(of), "%s, 256 blocks", text);
	(void)snprintf(wide, sizeof(wide), "%s.wide", name);
	time_beside(of, wide, t, product, other, UINT64_C(2000000000));
	if (other)
		let_end(other);
}

/* What partitions do not keep apart: the memory's bandwidth; a sum beside one that
 * computes is the control. */
static struct hal_buffer *of_sums;

static struct hal_point own_sums(const struct tenant *t)
{
	return sums(t, of_sums);
}

static void by_memory(const struct tenant *a, struct busy *other)
{
	const uint64_t bytes = UINT64_C(4) * LONG * GPU_BLOCK, budget = 1500000000;

	if (times < TIMES_MOST)
		return; /* not where a block is a call */
	of_sums = gpu_buffer(a->part, bytes);
	time_beside("a sum alone, half of the units", "memory.alone", a, own_sums, NULL,
		    budget);
	time_beside("a sum beside a tenant that computes, another partition",
		    "memory.beside_compute", a, own_sums, other, budget);
	let_end(other);
	other->big = gpu_buffer(other->t->part, bytes);
	time_beside("a sum beside another tenant's sums, another partition",
		    "memory.beside_memory", a, own_sums, other, budget);
	let_end(other);
	time_beside("launch beside another tenant's sums, another partition",
		    "memory.launch_beside", a, add, other, budget);
	let_end(other);
	TRY(hal_buffer_destroy(other->big));
	TRY(hal_buffer_destroy(of_sums));
}

static void beside_in_parts(void)
{
	const struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant a = tenant_on(&gpu, gpu.info.unit_cols / 2), b;
	struct busy other;

	both("launch alone, half of the units", "beside.alone", &a, NULL);
	b = second(&a, &plain);
	other = busy_as(&b);
	both("launch beside a busy tenant, same partition", "beside.same_partition", &a,
	     &other);
	end_second(&b);
	b = tenant_on(&gpu, gpu.info.unit_cols / 2);
	other = busy_as(&b);
	rate_alone("a busy tenant alone, half of the units", "beside.other_alone",
		   &other);
	both("launch beside a busy tenant, another partition", "beside.other_partition",
	     &a, &other);
	by_memory(&a, &other);
	end(&b);
	end(&a);
}

/* Both are given to the device at once, whose streams have priorities: its own doing. */
static void in_the_device(void)
{
	const struct hal_queue_desc better = {.size = sizeof(better), .priority = 1};
	struct gpu both_in = gpu_open_with(target, "hal.partition_inflight=16");
	struct tenant b = tenant_on(&both_in, 0), a = second(&b, &better);
	struct busy other = busy_as(&b);

	both("launch beside a busy tenant, no partitions, both with the device",
	     "whole.with_device", &a, &other);
	end_second(&a);
	end(&b);
	gpu_close(&both_in);
}

/* The controls: nothing keeps the two apart, or their priorities alone do. */
static void beside_in_one(void)
{
	const struct hal_queue_desc plain = {.size = sizeof(plain)},
				    better = {.size = sizeof(better), .priority = 1};
	struct tenant b = tenant_on(&gpu, 0), a = second(&b, &plain);
	struct busy other = busy_as(&b);

	both("launch alone, no partitions", "whole.alone", &a, NULL);
	rate_alone("a busy tenant alone, no partitions", "whole.other_alone", &other);
	both("launch beside a busy tenant, no partitions", "whole.same_priority", &a,
	     &other);
	end_second(&a);
	a = second(&b, &better);
	both("launch beside a busy tenant, no partitions, better priority",
	     "whole.better_priority", &a, &other);
	end_second(&a);
	end(&b);
	in_the_device();
}

void measure_beside(void)
{
	if (gpu.info.partitions_max > 1)
		beside_in_parts();
	else
		beside_in_one();
}

/* ---- a tenant that sets up --------------------------------------------------------- */

static const struct tenant *set_up_in;
static atomic_bool set_up_ends;
static uint32_t set_up_count; /* buffers so far */

/* Create and destroy buffers without end. */
static void *set_up(void *unused)
{
	while (!atomic_load(&set_up_ends)) {
		TRY(hal_buffer_destroy(gpu_buffer(set_up_in->part, 1 << 20)));
		set_up_count++;
	}
	return unused;
}

/* Whether the driver holds up launches while it allocates, only a card shows. */
void measure_setup(void)
{
	const uint64_t budget = 4000000000;
	struct tenant t = tenant_on(&gpu, 0);
	pthread_t thread;
	uint64_t begin;

	time_beside("launch, no tenant sets up", "setup.alone", &t, add, NULL, budget);
	set_up_in = &t;
	begin = now_ns();
	TRY(-pthread_create(&thread, NULL, set_up, NULL));
	time_beside("launch while another thread creates and destroys buffers of 1 MiB",
		    "setup.beside", &t, add, NULL, budget);
	atomic_store(&set_up_ends, true);
	(void)pthread_join(thread, NULL);
	printf("buffers created and destroyed meanwhile | %.1f a second\n",
	       set_up_count * 1e9 / (double)(now_ns() - begin));
	end(&t);
}

/* Other queues of one block each: the device has multiprocessors for all of them. */
void measure_channels(void)
{
	enum { OTHERS = 31, STEPS = 3 };
	static const uint32_t counts[STEPS] = {0, 7, OTHERS};
	static uint64_t took[TIMES_MOST];
	const struct hal_queue_desc plain = {.size = sizeof(plain)};
	const char *const channels = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	struct gpu all_in = gpu_open_with(target, "hal.partition_inflight=64");
	struct tenant t = tenant_on(&all_in, 0), others[OTHERS];
	const uint64_t rounds = rounds_of(&t, 1000000);
	struct busy busy[OTHERS];
	uint32_t i, k, n;

	for (i = 0; i < OTHERS; i++) {
		others[i] = second(&t, &plain);
		busy[i] = (struct busy){.t = &others[i], .rounds = rounds, .blocks = 1};
	}
	for (k = 0; k < STEPS; k++) {
		const uint64_t until = now_ns() + BUDGET_NS / STEPS;
		char text[96], name[48];

		for (n = 0; n < times && now_ns() < until; n++) {
			for (i = 0; i < counts[k]; i++)
				keep_busy(&busy[i]);
			took[n] = now_ns();
			wait_for(add(&t));
			took[n] = now_ns() - took[n];
		}
		for (i = 0; i < counts[k]; i++)
			let_end(&busy[i]);
		(void)snprintf(text, sizeof(text),
			       "launch beside %u busy queues, %s hardware channels",
			       counts[k], channels);
		(void)snprintf(name, sizeof(name), "channels.%s.beside_%u", channels,
			       counts[k]);
		(void)say(text, name, took, n);
	}
	for (i = 0; i < OTHERS; i++)
		end_second(&others[i]);
	end(&t);
	gpu_close(&all_in);
}

/* Under a policy, and what became of that. */
static void beside_under(const char *policy, const struct tenant *high,
			 struct busy *other)
{
	struct hal_policy_info after = {.size = sizeof(after)};
	char text[96], name[64];

	if (hal_device_set_policy(gpu.dev, policy, NULL)) {
		printf("policy %s | refused: %s\n", policy, hal_last_error());
		return;
	}
	(void)snprintf(text, sizeof(text), "launch beside a busy tenant, policy %s",
		       policy);
	(void)snprintf(name, sizeof(name), "policy.%s", policy);
	time_beside(text, name, high, add, other, UINT64_C(2200000000));
	TRY(hal_device_get_policy(gpu.dev, &after));
	if (after.fallback)
		printf("policy %s | given up: %s\n", policy, after.reason);
	TRY(hal_device_set_policy(gpu.dev, "fifo", NULL));
	let_end(other); /* whoever still waits goes on now */
}

/* Who there are is told to whoever asks for one that there is not. */
void measure_policies(void)
{
	const struct hal_queue_desc urgent = {.size = sizeof(urgent),
					      .priority = 1,
					      .weight = 8,
					      .deadline_ns = 1000000},
				    first = {.size = sizeof(first),
					     .priority = 1,
					     .service_class = HAL_CLASS_LATENCY},
				    last = {.size = sizeof(last),
					    .service_class = HAL_CLASS_BEST_EFFORT};
	struct tenant low = tenant_on(&gpu, 0), high = second(&low, &urgent), behind;
	struct busy other = busy_as(&low);
	char known[512], *name, *rest;

	(void)hal_device_set_policy(gpu.dev, "?", NULL);
	(void)snprintf(known, sizeof(known), "%s", hal_last_error());
	name = strstr(known, "there are ");
	if (!name)
		gpu_failed(known);
	for (name = strtok_r(name + strlen("there are "), " ", &rest); name;
	     name = strtok_r(NULL, " ", &rest))
		beside_under(name, &high, &other);
	end_second(&high);
	/* By class, whatever the policy. */
	TRY(hal_device_set_policy(gpu.dev, "priority", NULL));
	high = second(&low, &first);
	behind = second(&low, &last);
	other.t = &behind;
	time_beside("launch, latency-critical, beside best effort", "class.latency",
		    &high, add, &other, UINT64_C(2200000000));
	let_end(&other);
	end_second(&behind);
	end_second(&high);
	end(&low);
}
