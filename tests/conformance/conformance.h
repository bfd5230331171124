/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.h - one suite, every backend.
 *
 * A backend joins by a pack: an image for hal_program_load with the five kernels below,
 * registered with CONF_PACK.  A case ends as pass, fail or unsupported (with its reason);
 * BACKEND.expect lists the cases that are unsupported or known to fail there, and
 * anything else that is not a pass, as well as a pass that was not expected, fails the
 * run.
 *
 * Kernels, with the same meaning on every backend (D is written, A B S are read, int8):
 *   copy(D, S)     4096 bytes each
 *   gemm(D, A, B)  32 x 32 x 32, a_zero 3, b_zero 0, no bias, TensorFlow Lite's
 *                  requantization with multiplier 1073741824, shift -6, zero point -1
 *   add(D, A, B)   1024 bytes each, TensorFlow Lite's int8 ADD: zero points a 1, b -2,
 *                  d 3, left shift 20, multipliers and shifts a 1073741824 -1,
 *                  b 1518500250 -1, d 1288490189 -18
 *   spin(D)        64 bytes: takes at least 20,000 ns of device time on any partition,
 *                  then D[i] = (i * 7 + 1) & 0xff
 *   wild(D)        64 bytes: touches memory outside its arguments; ends with -EIO and a
 *                  text with an address or the kernel's name
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include <stdbool.h>

#include <hal/hal.h>

struct conf_pack {
	const char *backend; /* "npu"; as hal_device_info.backend has it */
	int (*image)(void **image, size_t *size); /* 0 or -errno */
	void (*free)(void *image);
	/* Where FOLD stops between groups alone: of how many a launch of spin is that is
	 * to be stopped inside.  Each group does all of it; 0: 1. */
	uint32_t spin_groups;
};

void conf_register(const struct conf_pack *pack);

/* At file scope, once a backend: CONF_PACK(ref_pack); */
#define CONF_PACK(pack)                                                                  \
	__attribute__((constructor)) static void conf_register_##pack(void)              \
	{                                                                                \
		conf_register(&(pack));                                                  \
	}                                                                                \
	struct conf_pack

#define CONF_COPY_BYTES 4096u
#define CONF_GEMM_N     32u
#define CONF_GEMM_BYTES 1024u
#define CONF_ADD_BYTES  1024u
#define CONF_SPIN_BYTES 64u
#define CONF_SPIN_NS    20000u

/* ---- oracle.c: what the kernels must answer, independent of every backend --------- */

void conf_oracle_gemm(int8_t *d, const int8_t *a, const int8_t *b);
void conf_oracle_add(int8_t *d, const int8_t *a, const int8_t *b);
void conf_oracle_spin(uint8_t *d);

/* ---- cases ------------------------------------------------------------------------ */

enum conf_result { CONF_PASS, CONF_FAIL, CONF_UNSUPPORTED };

enum { CONF_OBJECTS = 4096 };

/* One case's world: an open device and what to put away afterwards. */
struct conf {
	const char *target;
	const char *const *options; /* of the device, NULL: none */
	const struct conf_pack *pack;
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *prog;
	struct hal_queue *queues[CONF_OBJECTS];
	struct hal_buffer *buffers[CONF_OBJECTS];
	struct hal_partition *parts[CONF_OBJECTS];
	struct hal_timeline *timelines[CONF_OBJECTS];
	struct hal_sequence *sequences[CONF_OBJECTS];
	struct hal_completions *rings[CONF_OBJECTS];
	uint32_t queue_count, buffer_count, part_count, timeline_count, sequence_count,
		ring_count;
	char why[512];
};

struct conf_case {
	const char *name;
	int (*fn)(struct conf *c);
};

extern const struct conf_case conf_device_cases[], conf_partition_cases[],
	conf_buffer_cases[], conf_program_cases[], conf_queue_cases[], conf_time_cases[],
	conf_clock_cases[], conf_sequence_cases[], conf_completions_cases[],
	conf_fault_cases[], conf_preempt_cases[], conf_fold_cases[], conf_guest_cases[],
	conf_host_cases[], conf_share_cases[], conf_recolor_cases[], conf_bimodal_cases[],
	conf_evict_cases[], conf_account_cases[], conf_many_cases[];

int conf_fail(struct conf *c, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int conf_unsupported(struct conf *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define CHECK(cond)                                                                      \
	do {                                                                             \
		if (!(cond))                                                             \
			return conf_fail(c, __FILE__, __LINE__, "%s", #cond);            \
	} while (0)

/* The call answers 0; else its text is in the report. */
#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			return conf_fail(c, __FILE__, __LINE__, "%s is %d: %s", #call,   \
					 ok_, hal_last_error());                         \
	} while (0)

/* The call answers this error and says something about it. */
#define ERR(call, err)                                                                   \
	do {                                                                             \
		int e_ = (call);                                                         \
		if (e_ != (err))                                                         \
			return conf_fail(c, __FILE__, __LINE__, "%s is %d, not %s: %s",  \
					 #call, e_, #err, hal_last_error());             \
		if (!hal_last_error()[0])                                                \
			return conf_fail(c, __FILE__, __LINE__, "%s: no text", #call);   \
	} while (0)

#define EQ(a, b)                                                                         \
	do {                                                                             \
		uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                         \
		if (a_ != b_)                                                            \
			return conf_fail(                                                \
				c, __FILE__, __LINE__, "%s is %llu, not %s %llu", #a,    \
				(unsigned long long)a_, #b, (unsigned long long)b_);     \
	} while (0)

/* A step that is itself a small case. */
#define STEP(call)                                                                       \
	do {                                                                             \
		int step_ = (call);                                                      \
		if (step_)                                                               \
			return step_;                                                    \
	} while (0)

/* ---- world.c: steps --------------------------------------------------------------- */

int conf_open(struct conf *c);
/* Puts everything away; CONF_FAIL when something would not go. */
int conf_close(struct conf *c);

uint32_t conf_units(const struct conf *c);
bool conf_virtual(const struct conf *c);
/* Two of conf_share(2) have nothing in common, units or memory channels (which the
 * software device does not model): neither can change the other's time by one cycle. */
bool conf_apart(const struct conf *c);

/* All units of the device. */
int conf_whole(struct conf *c, struct hal_partition **part);
/* The i-th of n equal parts of the device, side by side along its columns, each with
 * memory channels of its own where there are enough. */
int conf_share(struct conf *c, uint32_t i, uint32_t n, struct hal_partition **part);
/* The same with all memory channels, which memory of both may need. */
int conf_beside(struct conf *c, uint32_t i, uint32_t n, struct hal_partition **part);
int conf_part(struct conf *c, const struct hal_partition_desc *desc,
	      struct hal_partition **part);
/* Destroys it now. */
int conf_part_gone(struct conf *c, struct hal_partition *part);
int conf_queue(struct conf *c, struct hal_partition *part, struct hal_queue **q);
int conf_queue_desc(struct conf *c, struct hal_partition *part,
		    const struct hal_queue_desc *desc, struct hal_queue **q);
int conf_queue_gone(struct conf *c, struct hal_queue *q);
int conf_buffer(struct conf *c, struct hal_partition *part, uint64_t bytes,
		struct hal_buffer **buf);
int conf_buffer_gone(struct conf *c, struct hal_buffer *buf);
int conf_timeline(struct conf *c, struct hal_timeline **t);
/* desc gives the commands. */
int conf_sequence(struct conf *c, struct hal_partition *part, const struct hal_cmd *cmds,
		  uint32_t n, struct hal_sequence **seq);
int conf_sequence_gone(struct conf *c, struct hal_sequence *seq);
int conf_ring(struct conf *c, uint32_t entries, struct hal_completions **ring);
int conf_timeline_gone(struct conf *c, struct hal_timeline *t);
/* A kernel of the pack, loaded at first use. */
int conf_kernel(struct conf *c, const char *name, struct hal_kernel **k);

/* One submission of commands; done may be NULL. */
int conf_submit(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmds,
		uint32_t n, struct hal_point *done);
/* ... that waits for w and signals s; either may be NULL. */
int conf_submit_ws(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmds,
		   uint32_t n, const struct hal_point *w, const struct hal_point *s,
		   struct hal_point *done);
int conf_wait(struct conf *c, struct hal_point p);
/* hal_wait with a deadline far away, for cases that want its answer. */
int conf_wait_raw(struct hal_point p);
/* An absolute deadline this far in the future. */
int64_t conf_deadline(int64_t ns);
/* Bytes of the buffer are these. */
int conf_same(struct conf *c, struct hal_buffer *buf, uint64_t offset, const void *data,
	      size_t bytes);
int conf_filled(struct conf *c, struct hal_buffer *buf, uint64_t offset, size_t bytes,
		uint32_t pattern);
/* Virtual time goes on a little: what was submitted is now running on the device.  A real
 * clock promises no such thing. */
int conf_let_start(struct conf *c);
/* Bytes that look like nothing else, the same for the same seed. */
void conf_noise(void *data, size_t bytes, uint32_t seed);

#endif
