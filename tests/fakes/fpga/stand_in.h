/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand_in.h - a libxrt_coreutil.so.2 without a card, and how a test steers it.
 *
 * It tests our code and says so in every device's name; nothing it answers is a result on
 * a card.  Two cards, for the platforms hal_stand_in_1 and hal_stand_in_2, that take any
 * xclbin of theirs; its kernels are C functions found by their names.  What is undefined
 * with XRT, and what ours must never do, is counted as misuse; docs/fpga.md lists what is
 * held to and what is not.
 *
 * Time: paced by CLOCK_MONOTONIC, until someone drives it (halStandInXrtDrive,
 * halStandInXrtAdvance).  Environment: as XRT, it ends the process where XILINX_XRT or
 * XCL_EMULATION_MODE is wrong; HAL_STAND_IN_XRT_STRICT=1: a process that misused it or
 * left something there exits with 70; HAL_STAND_IN_XRT_SHARED=FILE: cards are shared with
 * other processes that name the file; HAL_STAND_IN_XRT_RETAIN=0: cards do not retain
 * memory, so that nothing is loaded while there are buffers; HAL_STAND_IN_NPU=FILE: the
 * model that kernel npu is.
 */
#ifndef TESTS_FAKES_FPGA_STAND_IN_H
#define TESTS_FAKES_FPGA_STAND_IN_H

#include <stdint.h>

#define FPGA_STAND_IN_SYMBOL "hal_stand_in_xrt"

/* A run or a load that ended, in the order of ends. */
struct fpga_stand_in_job {
	char what[64]; /* the unit, KERNEL:{INSTANCE}, or "load" */
	uint32_t card;
	uint64_t start_ns, end_ns;
};

struct fpga_stand_in {
	uint32_t size;
	/* The nth call (1: next) of this name fails with this errno and does nothing; nth
	 * 0: disarms.  -1: no such call. */
	int (*break_call)(const char *call, uint64_t nth, uint32_t error);
	/* How many calls it still is to that, 0: it has been. */
	uint64_t (*armed)(void);
	/* Calls so far, of all names when call is NULL. */
	uint64_t (*calls)(const char *call);
	/* Handles that nobody has given back. */
	uint32_t (*live)(void);
	/* Used when gone, freed while in use, out of range, a run without arguments,
	 * calls that wait on a thread that may not.  text may be NULL: the first one. */
	uint32_t (*misuse)(const char **text);
	/* The card answers ENODEV from now on. */
	void (*lose)(uint32_t card);
	/* The next load of the card is another process': its UUID is told as another,
	 * and it has none of the units. */
	void (*steal)(uint32_t card);
	/* The next run to end of what is loaded on this unit (KERNEL:{INSTANCE}) has done
	 * nothing and is in this state of XRT's.  -1: no such unit. */
	int (*end_as)(uint32_t card, const char *unit, uint32_t state);
	/* The unit hangs from now on, until reset: what runs or begins there is given up
	 * (ERT_CMD_STATE_TIMEOUT) after 3 ms, also when it has been closed and opened.
	 * Once that has happened the card takes no other xclbin (EDEADLK). */
	int (*hang)(uint32_t card, const char *unit);
	/* This thread may make no call that waits. */
	void (*hot)(int yes);
	uint64_t (*now)(void);
	/* Jobs that ended since the last call, oldest first. */
	uint32_t (*jobs)(struct fpga_stand_in_job *out, uint32_t max);
	/* A new process: forgets counts, jobs, losses and what is on the cards, disarms.
	 * Nothing is open. */
	void (*reset)(void);
};

#endif
