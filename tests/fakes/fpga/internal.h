/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's own structures; all of it under one lock, taken in entry.c. */
#ifndef TESTS_FAKES_FPGA_INTERNAL_H
#define TESTS_FAKES_FPGA_INTERNAL_H

#include <stdarg.h>

#include "backends/fpga/xclbin.h"
#include "backends/fpga/xrt_calls.h"
#include "stand_in.h"

enum {
	CARDS = 2,
	UNITS_MAX = 256,
	JOBS_KEPT = 1024,
	PAGE = 4096,
	DIRTY_MOST = 1 << 20, /* bytes of new memory that are not zero */
	SHARES = 840,         /* every number of runs on a bank up to 8 divides it */
};
#define NEVER UINT64_MAX

enum object_kind { OBJECT_DEVICE, OBJECT_KERNEL, OBJECT_RUN, OBJECT_BO };

/* Whatever has a handle.  Gone ones stay, so that their use is noticed. */
struct object {
	struct object *next;
	enum object_kind kind;
	struct card *card;
	struct object *device; /* the handle it was made with */
	bool gone;
};

/* A part of another has its parent's memory. */
struct bo {
	struct object object;
	struct bo *lower; /* of the card, by address, highest first; no parts */
	struct bo *parent;
	uint32_t bank, parts;
	uint64_t address, bytes;
	uint8_t *host, *memory;
	/* Of one whose host memory is the kernel's: the file that .memory is; else -1.
	 * given: the descriptor that an export has answered, which the buffer closes; or
	 * -1. */
	int file, given;
	bool mapped; /* .memory is of a file, its own or an import's */
	bool apart;  /* imported from another card: it has no address on this one */
	/* Number of that file.  Of several handles of its memory on a card one is in the
	 * card's list; they have one address. */
	uint64_t inode;
	bool listed;
};

struct call {
	struct card *card;
	uint64_t args[FP_ARGS_MAX];
	uint32_t state;     /* number of hal_state, behind which is hal_resume; 0: none */
	uint8_t inside[80]; /* the kernel's own registers */
};

struct kernel_spec {
	const char *name;
	bool (*run)(const struct call *c);    /* false: an address that is none */
	uint64_t (*ns)(const struct call *c); /* NEVER: it does not end */
	bool by_memory; /* takes longer where others use its banks */
	/* Of a kernel that stops: it looks at hal_stop so often; 0: never.  begin takes
	 * what is resumed into .inside, before ns is asked; stop writes it, as it is
	 * after so long.  False: no such state, or nowhere. */
	uint64_t step_ns;
	bool (*begin)(struct call *c);
	bool (*stop)(struct call *c, uint64_t ran_ns);
	uint32_t answers; /* in hal_stop whatever happened; 0: as it is to */
};

struct kernel {
	struct object object;
	uint32_t index; /* unit of the card */
};

struct run {
	struct object object;
	struct kernel *kernel;
	uint32_t state;
	struct call call;
	struct bo *bos[FP_ARGS_MAX];
	uint32_t set; /* which arguments are */
};

struct unit {
	struct kernel *owner; /* exclusive */
	struct run *run;      /* NULL: whose was closed, or idle */
	bool busy;
	struct call call;
	bool bad;           /* it resumes from what is no state */
	uint32_t hal_stop;  /* register: asked 1, stopped 2 */
	uint64_t begins_ns; /* its registers are written and it begins */
	uint64_t stops_ns;  /* it has run so long when it stops; 0: it does not */
	uint64_t banks;
	uint64_t left; /* of its time, in parts of SHARES; NEVER: no end */
	uint64_t start_ns;
	uint32_t end_as; /* state that its next run ends in; 0: as it does */
	bool hangs;      /* also when it is closed and opened */
};

struct card {
	uint32_t index;
	const char *platform;
	bool loaded, lost;
	bool bad;            /* a unit could not be reset: nothing is loaded any more */
	bool steals, stolen; /* the next load is; what is loaded was */
	struct fp_xclbin x;
	struct unit units[UNITS_MAX]; /* [kernel * slot_count + slot] */
	struct bo *bos;
};

struct world {
	struct card cards[CARDS];
	struct object *objects;
	uint64_t now_ns;
	uint32_t drivers; /* who drives the clock; 0: paced */
	uint64_t pace_mono, pace_ns;
	uint32_t misused;
	char misuse[160];
	struct fpga_stand_in_job kept[JOBS_KEPT];
	uint32_t kept_first, kept_count;
};

extern struct world world;

/* kernels.c */
const struct kernel_spec *kernel_find(const char *name);
/* The bytes behind an address of the card, when all are of one buffer; or NULL. */
void *memory_at(const struct card *c, uint64_t address, uint64_t bytes);

/* npu.c */
bool npu_run(const struct call *c);
uint64_t npu_ns(const struct call *c);
void npu_drop(const struct card *c);

/* world.c */
__attribute__((format(printf, 1, 2))) void misuse(const char *fmt, ...);
uint64_t mono(void);
void world_pace(void);
/* To until_ns; or, when to_visible, to the first end of a run.  False: nothing that runs
 * will ever end. */
bool world_run(uint64_t until_ns, bool to_visible);
uint32_t units_of(const struct card *c);
const struct kernel_spec *spec_of(const struct card *c, uint32_t unit);
void unit_begin(struct card *c, uint32_t unit, struct run *r);
void unit_stop(struct card *c, uint32_t unit);
/* The host writes hal_stop, and reads it. */
void unit_ask(struct card *c, uint32_t unit, uint32_t value);
uint32_t unit_answer(struct card *c, uint32_t unit);
bool bo_busy(const struct bo *b);
void note(const char *what, const struct card *c, uint64_t start_ns);
void card_lose(struct card *c);
void card_empty(struct card *c);

/* shared.c: what other processes have of the cards */
bool shared_take(const struct card *c, uint32_t unit);
void shared_give(const struct card *c, uint32_t unit);
bool shared_is_free(const struct card *c);             /* of others */
bool shared_uuid(const struct card *c, uint8_t *uuid); /* false: nobody shares it */
bool shared_has(const struct card *c, const uint8_t *uuid);
void shared_put(const struct card *c); /* that it has what it has */

/* entry.c: time that a call takes, in which others get in. */
void spend(const char *call, uint64_t ns);

/* calls.c: what each entry point does */
#define STAND_IN_DECLARE(name, result, params, args) result do_##name params;
XRT_CALLS(STAND_IN_DECLARE)
XRT_CALLS_SHARE(STAND_IN_DECLARE)
int do_xrtRunSetArg(void *run, int index, va_list ap);
/* Give back what the buffer has of the host's, but for its handle. */
void bo_drop(struct bo *b);
/* The card of a handle, also of one that is gone; NULL: none has it. */
struct object *object_find(const void *handle);

#endif
