/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand_in.h - a Level Zero driver without a device, and how a test steers it.
 *
 * libze_stand_in.so plugs into the real loader through ZE_ENABLE_ALT_DRIVERS.  It tests
 * our code and says so in every device's name; nothing it answers is a result on a
 * device. Devices: 0: 4 tiles of 4 compute and 2 copy engines; 1: 2 tiles of 2 groups of
 * 2 compute engines; 2: 1 tile of 4 engines, a clock of 12.5 MHz and 32 bits; 3: 1
 * engine, no shared memory; 4: an NPU, which has no modules.
 *
 * Time is virtual.  An engine runs one command at a time, of the queue with the highest
 * priority; compute engines of one tile that run at once share its speed, unless there
 * are 4 in its one group; tiles share nothing.  Time is paced by CLOCK_MONOTONIC, looked
 * at in every call, until someone drives it through the driver's extension functions (see
 * LZ_STAND_IN_*).  How strict it is: docs/levelzero.md. Environment: ZE_AFFINITY_MASK;
 * ZE_FLAT_DEVICE_HIERARCHY (COMPOSITE unless set); ZES_ENABLE_SYSMAN=1;
 * HAL_STAND_IN_ZE_FAIL=CALL:NTH:RESULT; HAL_STAND_IN_ZE_VERSION=MAJOR.MINOR (API version
 * it claims; lists can be in order from 1.9 on); HAL_STAND_IN_ZE_COUNTED=0 (no events are
 * counter-based, which are there from 1.9 on, too); HAL_STAND_IN_ZE_ENGINES=N (engines it
 * claims for each compute group; those beyond what is above do not run anything);
 * HAL_STAND_IN_ZE_IMPORT=0 (it cannot import memory); HAL_STAND_IN_ZE_VIRTUAL=0 (it
 * reserves no addresses) or =reserve (it does, and has no memory to map there);
 * HAL_STAND_IN_ZE_STRICT=1 (a process that misused it or left something there exits with
 * 70).
 */
#ifndef TESTS_FAKES_LEVELZERO_STAND_IN_H
#define TESTS_FAKES_LEVELZERO_STAND_IN_H

#include <stdint.h>

#define LZ_STAND_IN_SYMBOL "hal_stand_in_ze"

/* One command that ran, in the order of ends. */
struct lz_stand_in_job {
	char what[32]; /* kernel's name, "copy", "fill", "barrier" */
	uint32_t device, tile, ordinal, index;
	uint32_t priority; /* enum lz_queue_priority */
	uint64_t start_ns, end_ns;
};

struct lz_stand_in {
	uint32_t size;
	/* The nth call (1: next) of this name answers result and does nothing; nth 0:
	 * disarms.  -1: no such call. */
	int (*break_call)(const char *call, uint64_t nth, uint32_t result);
	/* How many calls it still is to that, 0: it has been. */
	uint64_t (*armed)(void);
	/* Calls so far, of all names when call is NULL. */
	uint64_t (*calls)(const char *call);
	/* Answers other than SUCCESS and NOT_READY that this driver gave. */
	uint64_t (*errors)(void);
	/* Objects and allocations that nobody has destroyed. */
	uint32_t (*live)(void);
	/* Things that are undefined on a real driver: destroyed while in use, reset while
	 * in flight, appended to a closed list.  text may be NULL. */
	uint32_t (*misuse)(const char **text);
	/* The device is gone from now on, until revive. */
	void (*lose)(uint32_t device);
	void (*revive)(void);
	/* May the scheduler mode be set? */
	void (*permit)(int yes);
	/* Device memory that can still be had: bytes, UINT64_MAX: all there is. */
	void (*memory_left)(uint64_t bytes);
	/* zeModuleCreate takes so long, and other calls go on meanwhile, as a compiler's
	 * do; 0: no time. */
	void (*slow_modules)(uint64_t ns);
	/* Keep modules from being made, or no longer.  How many calls wait. */
	uint32_t (*hold_modules)(uint32_t on);
	/* A copy between host and device takes so much longer. */
	void (*slow_copies)(uint64_t ns);
	/* Does it say that it shares memory with other processes? */
	void (*share_memory)(int yes);
	/* Types of descriptors (LZ_EXTERNAL_*) that memory can be exported and imported
	 * as; after a reset dma-bufs alone.  leaves: a query for a descriptor makes a new
	 * one each time, and zeMemFree closes none; else it is one for each allocation,
	 * which zeMemFree closes. */
	void (*external)(uint32_t exports, uint32_t imports, int leaves);
	uint64_t (*now)(void);
	/* Virtual time jumps to ns, later than now; nothing may be running. */
	void (*set_now)(uint64_t ns);
	/* Commands that ended since the last call, oldest first. */
	uint32_t (*jobs)(struct lz_stand_in_job *out, uint32_t max);
	/* Forgets counts and jobs, disarms, revives. */
	void (*reset)(void);
};

/* Module image of format NATIVE that it takes: this, then count names of 32 bytes. */
#define LZ_STAND_IN_MAGIC 0x425a4548u
struct lz_stand_in_module {
	uint32_t magic;
	uint32_t bytes; /* all of it */
	uint32_t count;
	uint32_t reserved;
};

#endif
