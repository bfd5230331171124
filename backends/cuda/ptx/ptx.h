/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - PTX that is read, and rewritten before the driver compiles it: so that its
 * blocks can be stopped and run later, so that its kernels reach only a given range of
 * memory.
 *
 *     ptx_parse -> ptx_check(kernel, pass) -> ptx_rewrite(pass, which kernels) -> other
 * PTX
 *
 * It knows the grammar, what each instruction may touch, and nothing of the core or of a
 * driver.  A kernel that it cannot rewrite with the same results is refused, with the
 * line and the reason; so is one with an instruction, or anything else, that it does not
 * know.  Its neighbours are not.  Functions return 0 or
 * -errno and write to why what is wrong and where: -EINVAL it is no PTX of 64-bit
 * addresses, -ENOTSUP this kernel cannot be rewritten so, -ENOMEM.  Any thread; a module
 * does not change once it is parsed.
 */
#ifndef BACKENDS_CUDA_PTX_H
#define BACKENDS_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_WHY 200u

enum ptx_pass {
	/* A block looks at a flag before it does anything that can be seen outside of it;
	 * if that is set it writes its number to a list and ends.  The list is what a
	 * later launch runs. */
	PTX_ENTRY,
	/* As many blocks as are wanted run those of the grid in turns, every n-th each,
	 * and look at the flag before each.  How many turns each has done is where a
	 * later launch goes on. */
	PTX_LOOP,
	/* Each access of global memory that is not within a range of addresses is not
	 * made; what it should have read is 0.  That there was one is told at the end of
	 * its thread. */
	PTX_BOUNDS,
	/* Each access of global memory in a window of addresses goes to coloured memory,
	 * which is in pieces: an index translation (color.h). */
	PTX_COLOR,
	/* As ENTRY, and a block also looks in loops that have a barrier for all of its
	 * threads, if it has done nothing yet that can be seen outside of it: it is then
	 * stopped, too, and begins anew when the list is run.  Blocks of a list do not
	 * look there again, so that each gets to its end; those of a run do. */
	PTX_RESTART,
};
#define PTX_PASSES 5u

/* In global memory that the host can write while a kernel runs that PTX_ENTRY or PTX_LOOP
 * made. */
struct ptx_control {
	uint32_t stop;    /* not 0: no block begins any more */
	uint32_t stopped; /* 0 before; ENTRY: numbers in .to.  LOOP: launched blocks that
			     have ended before their turns */
};

/* What PTX_ENTRY, PTX_RESTART and PTX_LOOP give a kernel as seven more parameters, the
 * last: three of 8 bytes, four of 4.  A grid has less than 2^31 blocks. */
struct ptx_launch {
	uint64_t control; /* address of a ptx_control */
	/* ENTRY (and RESTART): address of uint32_t[.count]: numbers of blocks; with
	 * PTX_LAUNCH_RUN the number of the first block itself.  LOOP: address of
	 * uint32_t[.count], all 0 at first; number n is how many of the blocks n, n +
	 * .count, n + 2 * .count ... of the grid have been run. */
	uint64_t from;
	/* ENTRY: address of uint32_t[blocks launched].  LOOP: number of blocks of the
	 * grid. */
	uint64_t to;
	uint32_t grid[3]; /* of the whole kernel, whatever is launched */
	/* ENTRY: 0: the grid is launched; n: (n, 1, 1), of the numbers at .from; n |
	 * PTX_LAUNCH_RUN: (n, 1, 1), blocks .from to .from + n - 1.  LOOP: how many
	 * numbers .from has; however many blocks are launched, as (n, 1, 1), share them.
	 */
	uint32_t count;
};
#define PTX_LAUNCH_RUN    (UINT32_C(1) << 31)
#define PTX_LAUNCH_PARAMS 7u
#define PTX_LAUNCH_LONG   3u /* the first of them, of 8 bytes */

/* What PTX_BOUNDS gives a kernel as three more parameters, the last of those there are.
 * base and bytes are multiples of PTX_RANGE_ALIGN: an access that begins within ends
 * within, as a misaligned one faults.  bytes is not 0. */
struct ptx_range {
	uint64_t base, bytes;
	/* Address of a uint32_t in global memory, in the range or not: it is 1 when a
	 * thread has ended that was kept from something.  Hints (prefetch) do not count.
	 */
	uint64_t astray;
};
#define PTX_RANGE_PARAMS 3u
#define PTX_RANGE_ALIGN  256u

/* What PTX_COLOR gives a kernel as five more parameters, the last of those there are.  An
 * address in the window is that of byte (address - from) of what belongs to some
 * channels, in whatever argument or memory it comes from.  Nothing else may lie there;
 * best is nothing at all, so that an access which has not been rewritten faults. */
struct ptx_colors {
	uint64_t from, bytes; /* the window, multiples of PTX_RANGE_ALIGN */
	/* From there to the first group of the map that has any of them; what else is to
	 * be added is by ptx_color_window(). */
	uint64_t moved;
	uint32_t target, sum; /* which channels: by ptx_color_make() */
};
#define PTX_COLORS_PARAMS 5u
#define PTX_COLORS_LONG   3u /* the first of them, of 8 bytes */

struct ptx;
struct ptx_color;

/* The text need not end in a zero byte; one that it has ends it.  It is copied. */
int ptx_parse(const char *text, size_t bytes, struct ptx **out, char why[PTX_WHY]);
void ptx_free(struct ptx *m); /* NULL is let pass */

uint32_t ptx_kernels(const struct ptx *m);
/* Not ended by a zero byte: *bytes long. */
const char *ptx_kernel_name(const struct ptx *m, uint32_t kernel, uint32_t *bytes);
const char *ptx_pass_name(enum ptx_pass pass); /* NULL: there is none */

/* Whether a kernel can be rewritten. */
int ptx_check(const struct ptx *m, uint32_t kernel, enum ptx_pass pass,
	      char why[PTX_WHY]);
/* Rewrite as ptx_rewrite does, by PTX_COLOR. */
int ptx_rewrite_color(const struct ptx *m, const struct ptx_color *color,
		      const bool *which, char **text, size_t *bytes, char why[PTX_WHY]);
/* Rewrites the kernels with which[k], all if NULL, and leaves the others as they are.
 * *text ends in a zero byte, which *bytes does not count; the caller frees it.  Passes
 * are put one on another by parsing again: BOUNDS first, then COLOR, as what ENTRY and
 * LOOP add is not to be kept from or moved.  PTX_COLOR: -EINVAL, it needs a map. */
int ptx_rewrite(const struct ptx *m, enum ptx_pass pass, const bool *which, char **text,
		size_t *bytes, char why[PTX_WHY]);

#endif
