/* SPDX-License-Identifier: Apache-2.0 */
/* PTX that is none, that is hostile, and kernels that are refused: each with its reason
 * and its line; what is left alone stays as it is, byte by byte. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/color_map.h"

#include "color.h"
#include "list.h"
#include "module.h"

#define HEAD  ".version 7.8\n.target sm_80\n.address_size 64\n"
#define BEGIN ".visible .entry k(.param .u64 k_0, .param .u32 k_1) {\n" REGS
#define REGS                                                                             \
	".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n"      \
	".reg .f32 %f<4>;\n.shared .align 8 .b8 s[64];\n"
#define END "ret;\n}\n"

static char why[PTX_WHY];

static int parse(const char *text, struct ptx **m)
{
	const size_t n = strlen(text);
	char *exact = malloc(n ? n : 1); /* a byte too far is seen */
	int err;

	assert_non_null(exact);
	memcpy(exact, text, n);
	*m = NULL;
	err = ptx_parse(exact, n, m, why);
	free(exact);
	return err;
}

static void no_ptx(const char *text, const char *reason)
{
	struct ptx *m;

	if (parse(text, &m) != -EINVAL || !strstr(why, reason))
		fail_msg("%.60s: %s, not %s", text, why, reason);
}

static void unreadable(void **state)
{
	(void)state;
	no_ptx("", "no .version");
	no_ptx("hello", "line 1: a directive is expected, at hello");
	no_ptx(HEAD "!", "line 4: a directive is expected, at !");
	no_ptx(".version", "the PTX version is missing");
	no_ptx(".version 0", "the PTX version is missing");
	no_ptx(".version 7.8\n.target", "line 2: a target is missing");
	no_ptx(".version 7.8\n.target sm_80,", "a target is missing");
	no_ptx(HEAD ".address_size 32", "is not 64 bits");
	no_ptx(HEAD "/* ", "line 4: a comment is not terminated");
	no_ptx(HEAD ".file 1 \"x", "a string is not terminated");
	no_ptx(HEAD "\x01", "unexpected byte 0x01");
	no_ptx(HEAD ".entry", "name is missing");
	no_ptx(HEAD ".entry k(", "a space is missing");
	no_ptx(HEAD ".entry k(.param .u64 a .param", "a , or ) is missing");
	no_ptx(HEAD ".entry k(.param .u64 a)", "a body is missing");
	no_ptx(HEAD ".entry k {", "a body is not closed");
	no_ptx(HEAD ".entry k { { ret; }", "a body is not closed");
	no_ptx(HEAD ".entry k { ret", "a ; is missing");
	no_ptx(HEAD ".global .b32 x = {1, 2;", "a bracket is not closed");
}

/* What is wrong in one kernel, or in what it names, is no matter of its neighbour's. */
static void odd(const char *kernel, const char *reason)
{
	char all[1000];
	struct ptx *m;
	uint32_t p;

	snprintf(all, sizeof(all), HEAD "%s\n.entry sound() { ret; }", kernel);
	if (parse(all, &m))
		fail_msg("%s: %s", kernel, why);
	assert_int_equal(ptx_kernels(m), 2);
	for (p = 0; p < PTX_PASSES; p++) {
		assert_int_equal(ptx_check(m, 0, (enum ptx_pass)p, why), -ENOTSUP);
		if (!strstr(why, reason))
			fail_msg("%s: %s, not %s", kernel, why, reason);
		assert_int_equal(ptx_check(m, 1, (enum ptx_pass)p, why), 0);
	}
	ptx_free(m);
}

static void odd_kernels(void **state)
{
	(void)state;
	odd(".entry k { ret }", "line 4: a closing bracket has no opening bracket, at }");
	odd(".entry k { @ ret; }", "an instruction is missing");
	odd(".entry k { mov.u32 (a; }", "a bracket is not closed");
	odd(".entry k { .reg .b32 %r<0>; }", "the number of registers is missing");
	odd(".entry k { .reg .b32 %r<99999999999>; }",
	    "the number of registers is missing");
	odd(".entry k { .reg %r; }", "a type is missing");
	odd(".entry k {\n.strange 1;\nret; }", "line 5: unknown directive");
	odd(".entry k { .loc 1 2 mov.u32 a, b; }", "a number is expected, at mov");
	odd(".entry k(.param .u64 a .ptr) { ret; }", "a , or ) is missing");
	odd(".entry k(.param u64 a) { { ret; } }", "a type is missing");
	odd(".entry k(.oops .u64 a) .pragma \"x;{\"; { ret; }", "a space is missing");
	odd(".entry k(.oops .u64 a);\n.entry k(.param .u64 a) { ret; }",
	    "a space is missing");
	/* What it names could not be read. */
	odd(".shared .b32 x[4294967295][4294967295];\n.entry k { mov.u32 a, x; }",
	    "its declaration is of an unknown form, at x");
	odd(".global .align 3 .b32 x;\n.entry k { { st.u32 [x+4], 1; } }",
	    "line 5: its declaration is of an unknown form, at x");
	odd(".strange { 1 } x, { 2 } y;\n.entry k { mov.u64 a, y; }",
	    "this construct is not supported");
	odd(".strange .b32 x = { 1, x };\n.entry k { mov.u64 a, x; }",
	    "this construct is not supported");
}

static void deep(void **state)
{
	char text[1000] = HEAD ".entry k {";
	size_t n = strlen(text), i;

	(void)state;
	for (i = 0; i < PTX_DEPTH_MAX; i++)
		text[n + i] = '{';
	for (; i <= 2 * PTX_DEPTH_MAX; i++)
		text[n + i] = '}';
	text[n + i] = 0;
	odd(text + strlen(HEAD), "braces are nested too deeply");
}

/* Sides of two. */
static const struct ptx_color_map sides = {
	.granule = 4096, .mask_count = 1, .mask = {0xb3}};

static int rewrite(const struct ptx *m, enum ptx_pass pass, char **text, size_t *bytes)
{
	struct ptx_color color;
	struct ptx_colors colors;

	if (pass != PTX_COLOR)
		return ptx_rewrite(m, pass, NULL, text, bytes, why);
	assert_int_equal(ptx_color_make(&sides, 0, 1, &color, &colors, why), 0);
	return ptx_rewrite_color(m, &color, NULL, text, bytes, why);
}

/* The body of a kernel, and why the pass does not take it; NULL: it does. */
static void body(const char *text, enum ptx_pass pass, const char *reason)
{
	char all[2000], *made;
	struct ptx *m = NULL;
	size_t bytes;
	int err;

	snprintf(all, sizeof(all), HEAD "%s", text);
	if (parse(all, &m))
		fail_msg("%s: %s", text, why);
	err = ptx_check(m, 0, pass, why);
	if (!reason ? err != 0 : err != -ENOTSUP || !strstr(why, reason))
		fail_msg("%s: %s: %d, %s, not %s", ptx_pass_name(pass), text, err, why,
			 reason ? reason : "taken");
	assert_int_equal(rewrite(m, pass, &made, &bytes), err);
	if (!err)
		free(made);
	ptx_free(m);
}
#define BODY(text, pass, reason) body(BEGIN text END, pass, reason)

static void stops_refused(void **state)
{
	static const enum ptx_pass passes[] = {PTX_ENTRY, PTX_LOOP};
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		const enum ptx_pass p = passes[i];

		BODY("mov.u32 %r0, %ctaid.x;\n", p, NULL);
		BODY("trap;\n", p, NULL);
		BODY("brkpt;\n", p, "line 11: brkpt: stops for a debugger");
		BODY("frobnicate.b32 %r0, %r1;\n", p,
		     "frobnicate.b32: unknown instruction");
		BODY("mov.u32 %r0, %cluster_ctaid.x;\n", p, "uses clusters");
		BODY("barrier.cluster.arrive;\n", p, "uses clusters");
		BODY("mapa.u64 %d0, %d1, 0;\n", p, "uses clusters");
		BODY("st.async.shared::cluster.u32 [%r0], %r1, [%r2];\n", p,
		     "uses clusters");
		body(".entry k() .reqnctapercluster 2, 1, 1 { ret; }", p,
		     "line 4: .reqnctapercluster: uses clusters");
		BODY("mov.u32 %r0, %envreg2;\n", p, "cooperative launch");
		BODY("griddepcontrol.wait;\n", p, NULL);
		BODY("multimem.red.relaxed.sys.global.add.u32 [%d0], %r0;\n", p,
		     "other devices");
		BODY("mov.v4.u32 {%r0, %r1, %r2, %r3}, %ctaid;\n", p, "as a vector");
		BODY("mov.u16 %h0, %ctaid.x;\n", p, "a width other than 32 bits");
		BODY("ld.volatile.global.u32 %r0, [%d0];\n", p, NULL);
		BODY("L: ld.volatile.global.u32 %r0, [%d0];\n@%p0 bra L;\n", p,
		     "ld.volatile.global.u32: waits in a loop");
		BODY("L: ld.acquire.gpu.u32 %r0, [%d0];\n@%p0 bra L;\n", p,
		     "waits in a loop");
		BODY("L: atom.global.add.u32 %r0, [%d0], 0;\n@%p0 bra L;\n", p,
		     "waits in a loop");
		BODY("L: atom.global.cas.b32 %r0, [%d0], 1, 1;\n@%p0 bra L;\n", p,
		     "waits in a loop");
		BODY("L: nanosleep.u32 20;\n@%p0 bra L;\n", p, "waits in a loop");
		BODY("L: atom.global.add.u32 %r0, [%d0], 1;\n@%p0 bra L;\n", p, NULL);
		BODY("{ L: mov.u32 %r0, 1;\n@%p0 bra L; }\n"
		     "ld.volatile.global.u32 %r0, [%d0];\n",
		     p, NULL);
		BODY("mov.u32 %_hals_x, 1;\n", p, "reserved for rewriting");
		body(".extern .func other();\n.entry k() { call.uni other; ret; }", p,
		     "line 4: the kernel may call other, which is defined elsewhere");
		body(".extern .func vprintf();\n.entry k() { call.uni vprintf; ret; }", p,
		     NULL);
		body(".func f() { .reg .b32 %r; mov.u32 %r, %ctaid.x; ret; }\n"
		     ".entry k() { call.uni f; ret; }",
		     p, "reads the block index in a called function");
		body(".func f() { brkpt; }\n.entry k() { call.uni f; ret; }", p,
		     "stops for a debugger");
		body(".extern .func __assertfail(.param .b64 a) .noreturn;\n.entry k() {"
		     " { .param .b64 a; st.param.b64 [a], 0; call.uni __assertfail, (a); "
		     "} ret; }",
		     p, NULL);
		body(".entry k(.param .b8 k_0[4352]) { ret; }", p,
		     "4352 bytes of parameters leave no space");
		body(".entry k(.param .align 8 .b8 k_0[4312]) { ret; }", p, NULL);
		body(".entry k { ret; }", p, NULL);
	}
}

/* A loop that ends when another block has written is refused, whatever reads that. */
static void waits(void **state)
{
	static const char *const reads[] = {
		"ld.global.cg.u32 %r1, [%d1];",
		"ld.global.cv.u32 %r1, [%d1];",
		"ld.global.u32 %r1, [%d1];",
		"ld.u32 %r1, [%d1];",
		"ldu.global.u32 %r1, [%d1];",
		"ld.weak.global.ca.u32 %r1, [%d1];",
		"ld.global.L1::no_allocate.u32 %r1, [%d1];",
		"ld.relaxed.sys.global.u32 %r1, [%d1];",
		"ld.mmio.relaxed.sys.global.u32 %r1, [%d1];",
		"ld.global.v2.u32 {%r3, %r1}, [%d1];",
		"atom.global.or.b32 %r1, [%d1], 0;",
		"atom.global.or.b32 %r1, [%d1], %r7;",
		"atom.global.xor.b32 %r1, [%d1], %r7;",
		"atom.add.u32 %r1, [%d1], 0;",
		"atom.global.add.u32 %r1, [%d1], %r7;",
		"atom.global.max.u32 %r1, [%d1], 0;",
		"atom.global.min.u32 %r1, [%d1], 0xffffffff;",
		"atom.global.and.b32 %r1, [%d1], 0xffffffff;",
		"atom.global.exch.b32 %r1, [%d1], 0;",
		"atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 0;",
		"atom.global.cas.b32 %r1, [%d1], %r7, %r7;",
		"atom.global.cas.b32 %r1, [%d1], 1, 2;",
		"atom.global.inc.u32 %r1, [%d1], 0;",
		"atom.global.dec.u32 %r1, [%d1], %r7;",
		"@%p2 ld.global.cg.u32 %r3, [%d1]; mov.u32 %r1, %r3;",
		"ld.global.cg.u32 %r3, [%d1]; st.shared.u32 [s], %r3; ld.shared.u32 %r1, "
		"[s];",
		"ld.global.cg.u32 %r3, [%d1]; shfl.sync.idx.b32 %r1, %r3, 0, 31, -1;",
		"ld.global.cg.u32 %r3, [%d1]; add.u32 %r6, %r6, 1; add.u32 %r1, %r3, 1;",
		"cp.async.ca.shared.global [s], [%d1], 4; cp.async.wait_all; "
		"ld.shared.u32 %r1, [s];",
		"call (%r1), f, (%d1);",
		"call (%r1), h, (%d1);",
		"{ .param .b32 v; .param .b64 a; st.param.b64 [a], %d1; call (v), g, "
		"(a); "
		"ld.param.b32 %r1, [v]; }",
	};
	/* How a loop ends by %r1. */
	static const char *const loops[] = {
		"W: %s setp.eq.u32 %%p1, %%r1, 0; @%%p1 bra W;",
		"W: %s setp.ne.u32 %%p1, %%r1, 0; @!%%p1 bra W;",
		"W: %s setp.ne.u32 %%p1, %%r1, %%r5; @%%p1 bra X; ret; X: bra.uni W;",
		"W: { { %s } setp.lt.u32 %%p1, %%r1, %%r5; } @!%%p1 bra OUT; bra W; OUT:",
		"mov.u32 %%r2, 0; W: %s setp.eq.u32 %%p1, %%r1, 0; @%%p1 bra Y; mov.u32 "
		"%%r2, 1; Y: "
		"setp.eq.u32 %%p3, %%r2, 0; @%%p3 bra W;",
		"W: %s setp.eq.u32 %%p1, %%r1, 0; @%%p1 bra W; add.u32 %%r4, %%r4, 1; "
		"setp.lt.u32 %%p3, %%r4, 9; @%%p3 bra W;",
		"W: %s setp.ge.u32 %%p1, %%r1, 1; @%%p1 exit; bra W;",
		"bra Z; Y: setp.eq.u32 %%p1, %%r1, 0; @%%p1 bra Z; ret; Z: %s bra Y;",
	};
	char loop[600], text[2000];
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		for (j = 0; j < sizeof(loops) / sizeof(loops[0]); j++) {
			/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): ours, above
			 */
			snprintf(loop, sizeof(loop), loops[j], reads[i]);
			snprintf(text, sizeof(text),
				 ".func (.reg .u32 r) f(.reg .u64 a) { ld.global.cg.u32 "
				 "r, [a]; ret; }\n"
				 ".func (.reg .u32 r) h(.reg .u64 a) { call (r), f, (a); "
				 "ret; }\n"
				 ".func (.param .b32 r) g(.param .b64 a) { .reg .b64 x; "
				 ".reg .b32 y; "
				 "ld.param.b64 x, [a]; ld.b32 y, [x]; st.param.b32 [r], "
				 "y; ret; }\n"
				 "%sld.param.u64 %%d1, [k_0]; mov.u32 %%r7, 0; %s\n%s",
				 BEGIN, loop, END);
			body(text, PTX_ENTRY, "another block");
		}
}

/* Loops that get on by themselves. */
static void gets_on(void **state)
{
	static const char *const loops[] = {
		/* Search, by halves and one by one. */
		"W: add.u32 %r3, %r1, %r2; shr.u32 %r3, %r3, 1; mad.wide.u32 %d2, %r3, "
		"4, %d1; "
		"ld.global.u32 %r4, [%d2]; setp.lt.u32 %p1, %r4, 9; selp.b32 %r1, %r3, "
		"%r1, %p1; "
		"selp.b32 %r2, %r2, %r3, %p1; setp.lt.u32 %p2, %r1, %r2; @%p2 bra W;",
		"W: ld.global.u32 %r4, [%d1]; add.u64 %d1, %d1, 4; setp.ne.u32 %p1, %r4, "
		"0; @%p1 bra W;",
		"W: ld.global.u64 %d1, [%d1+8]; setp.ne.u64 %p1, %d1, 0; @%p1 bra W;",
		/* A bound that is read again each time. */
		"W: add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1; ld.global.u32 %r2, "
		"[%d1+4]; "
		"setp.lt.u32 %p1, %r1, %r2; @%p1 bra W;",
		/* A compare-and-swap until it succeeds. */
		"ld.global.u32 %r1, [%d1]; W: add.u32 %r2, %r1, 1; "
		"atom.global.cas.b32 %r3, [%d1], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; "
		"mov.u32 %r1, %r3; @%p1 bra W;",
		"W: ld.global.cg.u32 %r1, [%d1]; add.u32 %r2, %r1, 1; "
		"atom.global.cas.b32 %r3, [%d1], %r1, %r2; setp.eq.u32 %p1, %r1, %r3; "
		"@!%p1 bra W;",
		/* Work that blocks take one after another. */
		"W: atom.global.add.u32 %r1, [%d1], 1; setp.lt.u32 %p1, %r1, 100; @%p1 "
		"bra W;",
		/* What is read decides what is done, but not how often. */
		"W: atom.global.exch.b32 %r1, [%d1], 1; setp.eq.u32 %p1, %r1, 0; @%p1 "
		"bra X; "
		"st.global.u32 [%d1+4], %r1; X: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, "
		"%r2, 9; "
		"@%p2 bra W;",
		/* Memory of the block, and of its thread. */
		"W: ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;",
		"W: atom.shared.exch.b32 %r1, [s], 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra "
		"W;",
		"ld.global.cg.u32 %r1, [%d1]; W: setp.eq.u32 %p1, %r1, %r2; @%p1 bra W;",
	};
	char text[2000];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		snprintf(text, sizeof(text), "%s%s\n%s", BEGIN, loops[i], END);
		body(text, PTX_ENTRY, NULL);
	}
}

/* What recent GPUs brought.  A kernel that is refused is so alone, with its instruction
 * and line; the files are modern/'s. */
static void modern(void **state)
{
	static const struct {
		const char *file, *kernel;
		enum ptx_pass pass;
		const char *reason; /* NULL: it is taken */
	} rows[] = {
		{"tensor", "tiles_in", PTX_ENTRY, NULL},
		{"tensor", "tiles_in", PTX_LOOP,
		 "line 36: mbarrier.init.shared::cta.b64: uses a barrier in memory"},
		{"tensor", "tiles_in", PTX_BOUNDS, "line 68: cvta.param.u64: takes the"},
		{"tensor", "tiles_out", PTX_ENTRY, NULL},
		{"tensor", "tiles_out", PTX_LOOP,
		 "line 247: cp.async.bulk.tensor.1d.global.shared::cta.bulk_group: "
		 "copies "
		 "by a tensor map, which may go on when the next block begins"},
		{"tensor", "tiles_shared", PTX_ENTRY,
		 "line 296: "
		 "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_"
		 "tx::"
		 "bytes.multicast: uses clusters"},
		{"tensor", "cluster_two", PTX_ENTRY,
		 "line 353: .explicitcluster: uses clusters"},
		{"tensor", "cluster_two", PTX_BOUNDS,
		 "line 378: barrier.cluster.arrive: uses clusters"},
		{"block", "cluster_one", PTX_ENTRY, NULL},
		{"block", "cluster_one", PTX_LOOP,
		 "line 360: .explicitcluster: uses clusters"},
		{"block", "asserts", PTX_LOOP, NULL},
		{"block", "prints", PTX_BOUNDS, "line 551: mov.u64: takes the address"},
		{"block", "stacks", PTX_BOUNDS, NULL},
	};
	char path[512], *text;
	const char *name;
	struct ptx *m;
	uint32_t i, k, n;
	size_t bytes;
	int err;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), PTX_TESTS "/modern/%s.ptx", rows[i].file);
		text = list_file(path, &bytes);
		assert_int_equal(ptx_parse(text, bytes, &m, why), 0);
		for (k = 0; k < ptx_kernels(m); k++) {
			name = ptx_kernel_name(m, k, &n);
			if (n == strlen(rows[i].kernel) &&
			    memcmp(name, rows[i].kernel, n) == 0)
				break;
		}
		err = ptx_check(m, k, rows[i].pass, why);
		if (rows[i].reason ? err != -ENOTSUP || !strstr(why, rows[i].reason)
				   : err != 0)
			fail_msg("%s, %s: %d, %s, not %s", rows[i].kernel,
				 ptx_pass_name(rows[i].pass), err, why,
				 rows[i].reason ? rows[i].reason : "taken");
		free(text);
		ptx_free(m);
	}
}

#define POLL "mbarrier.try_wait.shared.b64 %p0, [s], %d0;\n"
#define TMA                                                                              \
	"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::"    \
	"bytes"

static void modern_bodies(void **state)
{
	(void)state;
	/* A nap between two looks at the block's own barrier. */
	BODY("L: " POLL "@%p0 bra X;\nnanosleep.u32 20;\nbra L;\nX:\n", PTX_ENTRY, NULL);
	BODY("L: " POLL "@%p0 bra X;\nnanosleep.u32 20;\nld.global.u32 %r0, [%d1];\n"
	     "bra L;\nX:\n",
	     PTX_ENTRY, "line 13: nanosleep.u32: waits in a loop");
	BODY("L: M: nanosleep.u32 20;\n@%p1 bra M;\n" POLL "@!%p0 bra L;\n", PTX_ENTRY,
	     "line 11: nanosleep.u32: waits in a loop");
	BODY("L: " POLL "nanosleep.u32 20;\nld.global.cg.u32 %r0, [%d1];\n"
	     "setp.eq.u32 %p0, %r0, 0;\n@%p0 bra L;\n",
	     PTX_ENTRY, "waits in a loop");
	/* A trap is no end of a loop. */
	BODY("L: ld.global.u32 %r0, [%d1];\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra X;\n"
	     "add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 99;\n@%p1 trap;\nbra L;\nX:\n",
	     PTX_ENTRY, "this loop may wait for another block");
	BODY(TMA " [%r0], [%d0, {%r1}], [%r2];\n", PTX_ENTRY, NULL);
	BODY(TMA ".multicast::cluster [%r0], [%d0, {%r1}], [%r2], %h0;\n", PTX_ENTRY,
	     "line 11: " TMA);
	BODY(TMA ".cta_group::2 [%r0], [%d0, {%r1}], [%r2];\n", PTX_ENTRY,
	     "uses clusters");
	BODY("tensormap.replace.tile.rank.global.b1024.b32 [%d0], 1;\n", PTX_ENTRY, NULL);
	BODY("tensormap.replace.tile.rank.global.b1024.b32 [%d0], 1;\n", PTX_LOOP,
	     "by a tensor map");
	BODY("mov.u32 %r0, %clusterid.x;\n", PTX_ENTRY, "uses clusters");
	body(".entry k() .reqnctapercluster 1 { .reg .b32 r; mov.u32 r, "
	     "%cluster_ctarank; "
	     "barrier.cluster.wait; ret; }",
	     PTX_ENTRY, NULL);
	body(".entry k() .reqnctapercluster 1 { .reg .b32 r; mov.u32 r, %clusterid.x; "
	     "ret; }",
	     PTX_ENTRY, "uses clusters");
	body(".entry k() .reqnctapercluster 1 .blocksareclusters { ret; }", PTX_ENTRY,
	     "line 4: .reqnctapercluster: uses clusters");
	body(".entry k() .reqnctapercluster 1, 2 { ret; }", PTX_ENTRY, "uses clusters");
	body(".entry k() .reqnctapercluster 1 { .reg .b64 d; .reg .b32 r; "
	     "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::"
	     "bytes."
	     "b128 [r], [r]; ret; }",
	     PTX_ENTRY, "uses clusters");
	/* The stack is given back as it was, or not at all. */
	BODY("stacksave.u64 %d0;\nalloca.u64 %d1, 8;\nstackrestore.u64 %d0;\n",
	     PTX_BOUNDS, NULL);
	BODY("stacksave.u64 %d0;\nadd.u64 %d0, %d0, 8;\nstackrestore.u64 %d0;\n",
	     PTX_BOUNDS, "line 13: stackrestore.u64: sets the stack pointer");
	BODY("stackrestore.u64 8;\n", PTX_BOUNDS, "sets the stack pointer");
	BODY("stacksave.u64 %d0;\nld.global.v2.u64 {%d2, %d0}, [%d1];\n"
	     "stackrestore.u64 %d0;\n",
	     PTX_BOUNDS, "sets the stack pointer");
}

static void loop_refused(void **state)
{
	(void)state;
	BODY("bar.sync 15;\n", PTX_LOOP, "barrier 15");
	BODY("bar.sync %r0;\n", PTX_LOOP, "barrier 15");
	BODY("bar.sync 15;\n", PTX_ENTRY, NULL);
	BODY("mbarrier.init.shared.b64 [s], 1;\n", PTX_LOOP, "a barrier in memory");
	BODY("setmaxnreg.dec.sync.aligned.u32 40;\n", PTX_LOOP,
	     "the number of registers");
	/* Some threads return, the others wait for one another. */
	BODY("mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 4;\n@%p0 bra L;\n"
	     "bar.sync 0;\nL:\n",
	     PTX_LOOP, "line 14: bar.sync: may be a barrier for only those threads");
	BODY("mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 4;\n@%p0 ret;\nbar.sync 0;\n",
	     PTX_LOOP, "may be a barrier for only those threads");
	BODY("ld.global.u32 %r0, [%d0];\nsetp.gt.u32 %p0, %r0, 4;\n@%p0 ret;\n"
	     "bar.sync 0;\n",
	     PTX_LOOP, "may be a barrier for only those threads");
	/* By way of a register that some threads have changed. */
	BODY("mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 4;\nmov.u32 %r1, 0;\n"
	     "@%p0 bra L;\nmov.u32 %r1, 1;\nL:\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 ret;\n"
	     "bar.sync 0;\n",
	     PTX_LOOP, "may be a barrier for only those threads");
	BODY("mov.u32 %r0, %tid.x;\nL: sub.u32 %r0, %r0, 1;\nbar.sync 0;\n"
	     "setp.gt.u32 %p0, %r0, 4;\n@%p0 bra L;\n",
	     PTX_LOOP, "may be a barrier for only those threads");
	/* All of a block do. */
	BODY("mov.u32 %r0, %ctaid.x;\nsetp.gt.u32 %p0, %r0, 4;\n@%p0 ret;\nbar.sync 0;\n",
	     PTX_LOOP, NULL);
	BODY("ld.param.u32 %r0, [k_1];\nL: sub.u32 %r0, %r0, 1;\nbar.sync 0;\n"
	     "setp.gt.u32 %p0, %r0, 4;\n@%p0 bra L;\n",
	     PTX_LOOP, NULL);
	BODY("mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 4;\n@%p0 bra L;\n"
	     "st.shared.u32 [s], %r0;\nL: bar.sync 0;\n",
	     PTX_LOOP, NULL);
}

static void bounds_refused(void **state)
{
	(void)state;
	BODY("ld.global.u32 %r0, [%d0+4];\nst.u32 [%d0+-4], %r0;\n", PTX_BOUNDS, NULL);
	BODY("ld.global.v2.f32 {%f0, %f1}, [%d0];\n", PTX_BOUNDS, NULL);
	BODY("trap;\n", PTX_BOUNDS, NULL);
	BODY("frobnicate.b32 %r0, %r1;\n", PTX_BOUNDS, "unknown instruction");
	BODY("ld.global.u32 %r0, [4096];\n", PTX_BOUNDS, "not a 64-bit register");
	BODY("ld.global.u32 %r0, [%r1];\n", PTX_BOUNDS, "not a 64-bit register");
	BODY("ld.global.u32 %r0, [%d0+%d1];\n", PTX_BOUNDS, "not a 64-bit register");
	BODY("ld.global.u32 %r0, [%d9];\n", PTX_BOUNDS, "not a 64-bit register");
	BODY("ld.global.u32 %q0, [%d0];\n", PTX_BOUNDS,
	     "something other than a register");
	BODY("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], "
	     "[%d0], %r1, [%r2];\n",
	     PTX_BOUNDS, "a number of bytes that is in a register");
	BODY("cp.async.bulk.tensor.1d.global.shared::cta [%d0, {%r1}], [%r0];\n",
	     PTX_BOUNDS, "by a tensor map");
	BODY("cp.async.ca.shared.global [%r0], [%d0], 4, %r1;\n", PTX_BOUNDS, NULL);
	BODY("cp.async.ca.shared.global [%r0], [%d0], %r1;\n", PTX_BOUNDS,
	     "a number of bytes that is not constant");
	BODY("cp.async.ca.shared.global [%r0], [%d0], 4, %p0;\n", PTX_BOUNDS,
	     "an unknown form of operands");
	BODY("tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0}];\n", PTX_BOUNDS,
	     "by a descriptor");
	BODY("suld.b.1d.b32.trap %r0, [%d0, {%r1}];\n", PTX_BOUNDS, "by a descriptor");
	BODY("wmma.load.a.sync.aligned.m16n16k16.row.global.f16 {%r0}, [%d0], %r1;\n",
	     PTX_BOUNDS, "matrix rows outside shared memory");
	BODY("mbarrier.arrive.b64 %d1, [%d0];\n", PTX_BOUNDS,
	     "a barrier outside shared memory");
	BODY("cvta.param.u64 %d0, k_0;\n", PTX_BOUNDS, "a parameter or constant");
	BODY("cvta.const.u64 %d0, %d1;\n", PTX_BOUNDS, "a parameter or constant");
	BODY("call.uni f;\n", PTX_BOUNDS, "calls a function");
	BODY("ld.u32 %r0, [s];\n", PTX_BOUNDS, "of another state space");
	BODY("mov.u32 %_halb_o, 1;\n", PTX_BOUNDS, "reserved for rewriting");
	body(".global .b32 v[4];\n" BEGIN "ld.global.u32 %r0, [v+12];\n" END, PTX_BOUNDS,
	     NULL);
	body(".global .b32 v[4];\n" BEGIN "ld.global.u32 %r0, [v+13];\n" END, PTX_BOUNDS,
	     "beyond the end of the variable");
	body(".global .b32 v[4];\n" BEGIN "ld.global.u32 %r0, [v-4];\n" END, PTX_BOUNDS,
	     "beyond the end of the variable");
	body(".extern .global .b32 v[];\n" BEGIN "ld.global.u32 %r0, [v];\n" END,
	     PTX_BOUNDS, "beyond the end of the variable");
	body(".global .b32 v[4];\n" BEGIN "mov.u64 %d0, v;\n" END, PTX_BOUNDS,
	     "takes the address of a variable");
	body(".global .b32 v[4];\n.const .u64 c = v;\n" BEGIN END, PTX_BOUNDS,
	     "line 5: variable c is initialized with an address");
	body(".entry k(.param .align 8 .b8 k_0[4344]) { ret; }", PTX_BOUNDS,
	     "leave no space for the 24 bytes");
}

static void color_refused(void **state)
{
	(void)state;
	BODY("ld.global.u32 %r0, [%d0+4];\nst.u32 [%d0+-4], %r0;\n", PTX_COLOR, NULL);
	BODY("cp.async.ca.shared.global [%r0], [%d0], %r1;\n", PTX_COLOR, NULL);
	BODY("cvta.param.u64 %d0, k_0;\n", PTX_COLOR, NULL);
	BODY("stackrestore.u64 %d0;\n", PTX_COLOR, NULL);
	BODY("mov.u32 %_halb_o, 1;\n", PTX_COLOR, NULL);
	BODY("frobnicate.b32 %r0, %r1;\n", PTX_COLOR, "unknown instruction");
	BODY("ld.global.u32 %r0, [4096];\n", PTX_COLOR, "line 11: ld.global.u32: has an");
	BODY("st.u32 [%r1], %r0;\n", PTX_COLOR, "not a 64-bit register");
	BODY("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], "
	     "[%d0], %r1, [%r2];\n",
	     PTX_COLOR, "copies more bytes than lie together");
	BODY("cp.async.bulk.tensor.1d.global.shared::cta [%d0, {%r1}], [%r0];\n",
	     PTX_COLOR, "by a tensor map");
	BODY("tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0}];\n", PTX_COLOR,
	     "by a descriptor");
	BODY("wmma.load.a.sync.aligned.m16n16k16.row.global.f16 {%r0}, [%d0], %r1;\n",
	     PTX_COLOR, "matrix rows outside shared memory");
	BODY("mbarrier.arrive.b64 %d1, [%d0];\n", PTX_COLOR, "outside shared memory");
	BODY("multimem.red.relaxed.sys.global.add.u32 [%d0], %r0;\n", PTX_COLOR,
	     "other devices");
	BODY("barrier.cluster.arrive;\n", PTX_COLOR, "uses clusters");
	BODY("call.uni f;\n", PTX_COLOR, "calls a function");
	BODY("mov.u32 %_halc_o, 1;\n", PTX_COLOR, "begin with _halc_");
	BODY("mov.u32 %_hals_o, 1;\n", PTX_COLOR, "begin with _hals_");
	BODY("mov.u32 %_halc_o, 1;\n", PTX_BOUNDS, "begin with _hal");
	BODY("mov.u32 %_halc_o, 1;\n", PTX_ENTRY, NULL);
	body(".entry k(.param .align 8 .b8 k_0[4328]) { ret; }", PTX_COLOR,
	     "leave no space for the 32 bytes");
	body(".global .b32 v[4];\n" BEGIN "ld.global.u32 %r0, [v+12];\n" END, PTX_COLOR,
	     NULL);
}

static uint32_t random_number(void)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33);
}

/* The pieces of all who have channels, together, are all of memory, and each lies on its
 * channels as the map itself says. */
static void check_colors(const struct ptx_color_map *map, uint32_t channels,
			 uint32_t count)
{
	static bool taken[1u << 14];
	struct color_map other = {.kind = map->q ? COLOR_MAP_XORMOD : COLOR_MAP_XOR,
				  .mask_count = map->mask_count,
				  .q = map->q,
				  .shift = map->shift,
				  .digits = map->digits};
	const uint32_t groups = (1u << 12) / channels;
	struct ptx_color color;
	struct ptx_colors colors;
	uint32_t first, channel;
	uint64_t i, at;

	memcpy(other.mask, map->mask, sizeof(map->mask));
	memcpy(other.weight, map->weight, sizeof(map->weight));
	memset(taken, 0, sizeof(taken));
	for (first = 0; first < channels; first += count) {
		assert_int_equal(ptx_color_make(map, first, count, &color, &colors, why),
				 0);
		for (i = 0; i < (uint64_t)groups * count; i++) {
			at = ptx_color_place(&color, &colors, i * map->granule + 17);
			assert_int_equal(at % map->granule, 17);
			at /= map->granule;
			channel = color_map_channel(&other, at);
			if (channel < first || channel >= first + count || taken[at] ||
			    at >= (uint64_t)groups * channels)
				fail_msg("granule %llu of %u from %u on, of %u: %llu, "
					 "channel %u",
					 (unsigned long long)i, count, first, channels,
					 (unsigned long long)at, channel);
			taken[at] = true;
		}
		assert_int_equal(
			ptx_color_extent(&color, (uint64_t)groups * count * map->granule),
			(uint64_t)groups * channels * map->granule);
		assert_int_equal(ptx_color_extent(&color, 1),
				 (uint64_t)channels * map->granule);
	}
}

static void colors(void **state)
{
	static const uint32_t sums[] = {0, 0, 3, 5, 7};
	uint32_t made = 0, i, j;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct ptx_color_map map = {.granule = 256u << random_number() % 5,
					    .mask_count = random_number() % 5,
					    .q = sums[random_number() % 5]};
		const uint32_t all = map.q ? map.q : 1;
		struct ptx_color color;
		struct ptx_colors colors;

		for (j = 0; j < map.mask_count; j++)
			map.mask[j] = random_number() % 4096;
		map.shift = map.mask_count;
		map.digits = map.q ? 1 + random_number() % 5 : 0;
		for (j = 0; j < map.digits; j++)
			map.weight[j] = (uint8_t)(random_number() % map.q);
		if (ptx_color_make(&map, 0, 1, &color, &colors, why)) {
			assert_non_null(strstr(why, "one of each channel"));
			continue;
		}
		made++;
		check_colors(&map, all << map.mask_count,
			     1u << random_number() % (map.mask_count + 1));
	}
	assert_true(made > 500);
}

static void no_colors(const struct ptx_color_map *map, uint32_t first, uint32_t count,
		      const char *reason)
{
	struct ptx_color color;
	struct ptx_colors colors;

	if (ptx_color_make(map, first, count, &color, &colors, why) != -ENOTSUP ||
	    !strstr(why, reason))
		fail_msg("%s, not %s", why, reason);
}

static void colors_refused(void **state)
{
	struct ptx_color_map map = sides;

	(void)state;
	no_colors(&map, 0, 0, "must be a power of two");
	no_colors(&map, 2, 1, "channels 2 to 2 of 2");
	no_colors(&map, 0, 4, "must be a power of two, at most 2");
	map.mask[0] = 0xb2;
	no_colors(&map, 0, 1, "the low 1 bits of a granule's number do not tell");
	map = sides;
	map.granule = 128;
	no_colors(&map, 0, 1, "the smallest are 256 bytes");
	map.granule = 1u << 30;
	no_colors(&map, 0, 1, "a group is too large");
	map = sides;
	map.q = 6;
	map.digits = map.shift = 1;
	map.weight[0] = 3;
	no_colors(&map, 0, 1, "weight 3 of the first digit has no inverse modulo 6");
	map.weight[0] = 5;
	no_colors(&map, 1, 2, "the first a multiple of it");
	map.shift = 2;
	no_colors(&map, 0, 1, "digits begin at bit 2, but there are 1 masks");
}

/* How often the text has that, of a body with bounds. */
static uint32_t times(const char *statements, const char *what)
{
	char all[2048], *text, *p;
	struct ptx *m;
	size_t bytes;
	uint32_t n = 0;

	snprintf(all, sizeof(all), "%s%s}\n", HEAD BEGIN, statements);
	assert_int_equal(parse(all, &m), 0);
	assert_int_equal(ptx_rewrite(m, PTX_BOUNDS, NULL, &text, &bytes, why), 0);
	for (p = text; (p = strstr(p, what)); p++)
		n++;
	free(text);
	ptx_free(m);
	return n;
}

/* What is kept from an access is told wherever a thread may end; hints may name what is
 * not there. */
static void astray(void **state)
{
	const char *noted = "mov.u32 %_halb_w, 1", *told = "st.global.u32 [%_halb_a], 1";

	(void)state;
	assert_int_equal(times("st.global.u32 [%d0], %r0;\nret;\n", noted), 1);
	assert_int_equal(times("discard.global.L2 [%d0], 128;\nret;\n", noted), 1);
	assert_int_equal(times("prefetch.global.L2 [%d0];\nret;\n", noted), 0);
	assert_int_equal(times("prefetchu.L1 [%d0];\nret;\n", noted), 0);
	assert_int_equal(times("applypriority.global.L2::evict_normal [%d0], 128;\n"
			       "ret;\n",
			       noted),
			 0);
	assert_int_equal(times("ret;\n", told), 1);
	assert_int_equal(times("@%p0 ret;\nexit;\n", told), 2);
	assert_int_equal(times("@%p0 ret;\n", told), 2);
	assert_int_equal(times("add.u32 %r0, %r0, 1;\n", told), 1);
	assert_int_equal(times("", told), 1);
}

/* Which kernel, which pass; and those that are not named stay. */
static void others_stay(void **state)
{
	const char *two = HEAD ".entry a() { ret; } // a\n.entry b() { brkpt; }\n";
	const bool first[] = {true, false}, none[] = {false, false};
	struct ptx *m;
	size_t bytes;
	uint32_t n;
	char *text;

	(void)state;
	assert_int_equal(parse(two, &m), 0);
	assert_int_equal(ptx_kernels(m), 2);
	assert_memory_equal(ptx_kernel_name(m, 1, &n), "b", 1);
	assert_int_equal(n, 1);
	assert_int_equal(ptx_check(m, 2, PTX_ENTRY, why), -EINVAL);
	assert_int_equal(ptx_check(m, 0, (enum ptx_pass)4, why), -EINVAL);
	assert_null(ptx_pass_name((enum ptx_pass)4));
	assert_int_equal(ptx_rewrite(m, PTX_COLOR, NULL, &text, &bytes, why), -EINVAL);
	assert_int_equal(ptx_rewrite(m, PTX_ENTRY, NULL, &text, &bytes, why), -ENOTSUP);
	assert_int_equal(ptx_rewrite(m, PTX_ENTRY, none, &text, &bytes, why), 0);
	assert_string_equal(text, two);
	assert_int_equal(bytes, strlen(two));
	free(text);
	assert_int_equal(ptx_rewrite(m, PTX_ENTRY, first, &text, &bytes, why), 0);
	assert_non_null(strstr(text, ".entry a(\n\t.param .u64 _hals_control,\n"));
	assert_non_null(strstr(text, "// a\n.entry b() { brkpt; }\n"));
	free(text);
	ptx_free(m);
}

/* A parameter may say what it points to, as compilers do since CUDA 12. */
static void pointers(void **state)
{
	const char *k = HEAD ".entry k(.param .u64 .ptr .global .align 4 k_0,\n"
			     ".param .u64 .ptr .align 1 k_1) { ret; }\n";
	const bool which[] = {true};
	struct ptx *m;
	size_t bytes;
	char *text;

	(void)state;
	if (parse(k, &m))
		fail_msg("%s", why);
	assert_int_equal(ptx_rewrite(m, PTX_ENTRY, which, &text, &bytes, why), 0);
	assert_non_null(strstr(text, ".ptr .global .align 4 k_0,"));
	assert_non_null(strstr(text, "k_1,\n\t.param .u64 _hals_control,\n"));
	free(text);
	ptx_free(m);
}

/* How often the rewritten text has that. */
static int made(const char *text, enum ptx_pass pass, const char *what)
{
	struct ptx *m = NULL;
	char *out = NULL, *p;
	size_t bytes;
	int n = 0;

	if (parse(text, &m))
		fail_msg("%s: %s", text, why);
	if (rewrite(m, pass, &out, &bytes))
		fail_msg("%s: %s", text, why);
	for (p = out; (p = strstr(p, what)); p++)
		n++;
	free(out);
	ptx_free(m);
	return n;
}

/* The vote comes behind the first of these, and before the other; with sm_60 before any
 * branch.  What is a vote of its own is a barrier more. */
static void votes(void **state)
{
	static const struct {
		const char *text, *after, *before, *how;
	} rows[] = {
		/* Behind what reads, in front of what writes. */
		{"ld.global.u32 %r0, [%d0];\nadd.u32 %r1, %r0, 1;\nst.global.u32 [%d1], "
		 "%r1;\n",
		 "add.u32 %r1", "st.global.u32 [%d1]", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nred.global.add.u32 [%d1], %r0;\n",
		 "ld.global.u32 %r0", "red.global.add.u32 [%d1]", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\natom.shared.add.u32 %r1, [s], 1;\n",
		 "ld.global.u32 %r0", "atom.shared", "bar.red"},
		{"mov.u32 %r0, 1;\nld.volatile.global.u32 %r0, [%d0];\n",
		 "mov.u32 %r0, 1", "ld.volatile.global.u32 %r0", "bar.red"},
		{"mov.u32 %r0, 1;\nmembar.gl;\n", "mov.u32 %r0, 1", "membar", "bar.red"},
		{"mov.u32 %r0, 1;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\n",
		 "mov.u32 %r0, 1", "shfl.sync", "bar.red"},
		/* The kernel's own barrier takes it along. */
		{"ld.global.u32 %r0, [%d0];\nst.shared.u32 [s], %r0;\nbar.sync 0;\n"
		 "ld.shared.u32 %r1, [s];\n",
		 "st.shared.u32 [s]", "ld.shared.u32 %r1", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nbar.sync 1;\n", "ld.global.u32 %r0",
		 "bar.sync 1", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\n@%p0 bar.sync 0;\n", "ld.global.u32 %r0",
		 "@%p0 bar.sync", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nbar.sync 0, 32;\n", "ld.global.u32 %r0",
		 "bar.sync 0, 32", "bar.red"},
		/* No address, no way by what was read, which may not have been written.
		 */
		{"ld.global.u64 %d2, [%d0];\nld.global.u32 %r0, [%d2];\n",
		 "ld.global.u64 %d2", "ld.global.u32 %r0", "bar.red"},
		{"ld.u32 %r0, [%d0];\nmul.wide.u32 %d2, %r0, 4;\nadd.u64 %d2, %d2, %d1;\n"
		 "ld.global.u32 %r1, [%d2];\n",
		 "add.u64 %d2", "ld.global.u32 %r1", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nst.shared.u32 [s], %r0;\nld.shared.u32 %r1, "
		 "[s];\nmul.wide.u32 %d2, %r1, 4;\nld.global.u32 %r2, [%d2];\n",
		 "mul.wide.u32 %d2", "ld.global.u32 %r2", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 "
		 "ld.global.u32 %r1, [%d1];\n",
		 "setp.ne.u32 %p0", "@%p0 ld", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\n"
		 "mov.u32 %r7, 1;\n",
		 "setp.ne.u32 %p0", "@%p0 ret", "bar.red"},
		{"ld.global.v2.u32 {%r1, %r0}, [%d0];\nsetp.ne.u32 %p0, %r0, 0;\n"
		 "@%p0 bra L;\nmov.u32 %r7, 1;\nL:\n",
		 "setp.ne.u32 %p0", "@%p0 bra L", "bar.red"},
		{"ld.global.u32 %r0, [%d0];\nst.shared.u32 [s+4], 0;\n@%p1 st.shared.u32 "
		 "[%r0], 1;\n",
		 "[s+4]", "@%p1 st.shared", "bar.red"},
		/* Not in a loop, nor behind one. */
		{"mov.u32 %r0, 1;\nL: ld.global.u32 %r1, [%d0];\nadd.u32 %r0, %r0, 1;\n"
		 "setp.lt.u32 %p0, %r0, 9;\n@%p0 bra L;\n",
		 "mov.u32 %r0, 1", "L: ld", "bar.red"},
		/* Where all come by, or end. */
		{"@%p0 bra E;\nld.global.u32 %r0, [%d0];\nst.global.u32 [%d1], "
		 "%r0;\nE:\n",
		 "ld.global.u32 %r0", "st.global.u32 [%d1]", "barrier.red"},
		{"@%p0 ret;\nld.global.u32 %r0, [%d0];\nst.global.u32 [%d1], %r0;\n",
		 "ld.global.u32 %r0", "st.global.u32 [%d1]", "barrier.red"},
		{"@%p0 bra L;\nbra.uni E;\nL: ld.global.u32 %r0, [%d0];\nst.global.u32 "
		 "[%d1], %r0;\nE:\n",
		 "ld.global.u32 %r0", "st.global.u32 [%d1]", "barrier.red"},
		{"@%p0 bra L;\nld.global.u32 %r0, [%d0];\nL:\nmov.u32 %r1, %r0;\n"
		 "st.global.u32 [%d1], %r1;\n",
		 "mov.u32 %r1", "st.global.u32 [%d1]", "barrier.red"},
		{"mov.u32 %r0, 1;\n@%p0 bra L;\nst.global.u32 [%d1], %r0;\nL:\nmov.u32 "
		 "%r1, 1;\n",
		 "mov.u32 %r0", "@%p0 bra L", "bar.red"},
		{"mov.u32 %r0, 1;\n@%p0 bra L;\nadd.u32 %r0, %r0, 1;\nL:\nst.global.u32 "
		 "[%d1], %r0;\n",
		 "L:", "st.global.u32 [%d1]", "barrier.red"},
		{"mov.u32 %r0, 1;\n{ ld.global.u32 %r1, [%d0];\nst.global.u32 [%d1], "
		 "%r0; "
		 "}\n",
		 "mov.u32 %r0", "{ ld", "bar.red"},
		{"mov.u32 %r0, 1;\ncall.uni f;\n", "mov.u32 %r0", "call", "bar.red"},
	};
	char text[2000], *out, *vote, *after, *before;
	struct ptx *m;
	uint32_t i, old;
	size_t bytes;

	(void)state;
	for (i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *part;

		old = i % 2;
		part = rows[i / 2].text;
		snprintf(text, sizeof(text),
			 ".version 7.8\n.target sm_%u\n.address_size 64\n%s%s%s",
			 old ? 60u : 80u, ".func f() { ret; }\n" BEGIN, part, END);
		assert_int_equal(parse(text, &m), 0);
		if (ptx_rewrite(m, PTX_ENTRY, NULL, &out, &bytes, why))
			fail_msg("%s: %s", part, why);
		vote = strstr(out, "@%_hals_q bra $_hals_stopped");
		assert_non_null(vote);
		after = strstr(out, rows[i / 2].after);
		before = strstr(out, rows[i / 2].before);
		if (old && strcmp(rows[i / 2].how, "barrier.red") == 0) {
			after = out;
			before = strchr(strstr(out, "%p0"), '\n');
		} else if (!strstr(out, rows[i / 2].how) ||
			   (rows[i / 2].how[3] == '.' && strstr(out, "barrier.red"))) {
			fail_msg("%s: no %s", part, rows[i / 2].how);
		}
		if (!after || !before || after > vote || before < vote)
			fail_msg("%s: the vote is elsewhere: %s", part, out);
		free(out);
		ptx_free(m);
	}
	/* Those that end before it vote, too. */
	assert_int_equal(made(HEAD BEGIN "@%p0 bra E;\nst.global.u32 [%d1], 1;\nE:\n" END,
			      PTX_ENTRY, "@%p0 bra $_hals_early;"),
			 1);
	assert_int_equal(made(HEAD BEGIN "@%p0 exit;\nst.global.u32 [%d1], 1;\n" END,
			      PTX_ENTRY, "@%p0 bra $_hals_early;"),
			 1);
	assert_int_equal(made(HEAD BEGIN "@%p0 ret;\nst.global.u32 [%d1], 1;\n" END,
			      PTX_ENTRY, "$_hals_early:\n"),
			 1);
	/* Shared with the kernel's own barrier, it is the only one. */
	assert_int_equal(made(HEAD BEGIN "bar.sync 0;\n" END, PTX_ENTRY, "bar"), 1);
	assert_int_equal(made(HEAD BEGIN "bar.sync 0;\nbar.sync 0;\n" END, PTX_ENTRY,
			      "bar.sync 0"),
			 1);
	assert_int_equal(made(HEAD ".entry k { }", PTX_ENTRY, "bar.red.or.pred"), 1);
}

/* A launch that may begin early does so when blocks have ended that were not stopped. */
static void dependents(void **state)
{
	static const char text[] =
		HEAD BEGIN "griddepcontrol.launch_dependents;\n@%p0 griddepcontrol."
			   "launch_dependents;\ngriddepcontrol.wait;\n" END;

	(void)state;
	assert_int_equal(made(text, PTX_ENTRY, "griddepcontrol.launch"), 0);
	assert_int_equal(made(text, PTX_ENTRY, "griddepcontrol.wait"), 1);
	assert_int_equal(made(text, PTX_LOOP, "griddepcontrol.launch"), 0);
	assert_int_equal(made(text, PTX_BOUNDS, "griddepcontrol.launch"), 2);
}

/* NVIDIA's assembler takes each of these statements: one store that bounds has to guard,
 * and one reading of the block's number. */
static void no_lines(void **state)
{
	static const char *const between[] = {
		"\n",
		"",
		"\r\n",
		"\f",
		"\x1a",
		" // x\r y\n",
		"/* ; } */",
		"\n# 12 \"a.cu\" 1 3\n",
		"\n#line 7 \"a.cu\"\r\n",
		"\n.loc 1 2 3 ",
		" .loc 1 2 3\n",
		".loc 1 2 3, function_name $I, inlined_at 1 2 3 ",
		".loc 1 2 3, function_name $I+0x2, inlined_at 1 2 3\n",
		"L: ",
		"L:M:",
		".pragma \"nounroll; }\";",
		"{ .reg .b32 x; } ",
		".reg .v4 .f32 v; .reg .v2 .b32 w<3>;",
		".reg .b128 w; ",
	};
	char text[1000];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		snprintf(text, sizeof(text),
			 HEAD ".file 1 \"a\nb\\\"\n.visible.entry k(.param .u64 p) {"
			      ".reg .b32 %%r<4>;.reg .b64 %%d<4>;"
			      "ld .param.u64 %%d1,[p];mov.u32 %%r1,%%ctaid .x;%s"
			      "st.global.u32 [%%d1],%%r1;ret;}",
			 between[i]);
		assert_int_equal(made(text, PTX_BOUNDS, "@%_halb_q st.global"), 1);
		assert_int_equal(made(text, PTX_ENTRY, "%r1,%_hals_x"), 1);
	}
}

/* What stands in front of a kernel's body, in orders that the assembler takes. */
static void heads(void **state)
{
	static const char *const heads[] = {
		".entry k(.param .u64 p)\n.pragma \"nounroll\";\n{",
		".entry k(.param .u64 p) .pragma \"a\"; .maxntid 1,1,1 .pragma \"b{\", "
		"\"c\"; {",
		".entry k(.param .u64 p).minnctapersm 2 .maxntid 64,1,1{",
		".weak .entry k(\n# 1 \"a\"\n.param .u64 p)\n# 2 \"a\"\n{",
		".visible/*a*/.entry/*b*/k/*c*/(/*d*/.param/*e*/.u64/*f*/p/*g*/)/*h*/{",
		".func (.reg .u32 rv) g(.reg .u32 a) { add.u32 rv, a, a; ret; }\n"
		".entry k(.param .u64 p) { { .reg .b32 x; call (x), g, (1); }",
		".func (.reg .u32 r, .reg .pred q) g(.reg .v4 .f32 a, .reg .b64 b) "
		";"
		".entry k(.param .u64 p) {",
		".func g(.param .b32 a, .param .align 8 .b8 b[]) { ret; } .entry "
		"k(.param .u64 p) {",
		".func f() { ret; }\n.func g();\n.alias g, f;\n.entry k(.param .u64 p) {",
		".global .attribute(.managed) .align 8 .b8 x[8];.entry k(.param .u64 p) "
		"{",
		".section .debug_abbrev\n{\n.b8 1\n.b8 17,0x1\nL1:\n.b64 L1+3\n}.entry "
		"k(.param .u64 p) {",
		".entry k(.param .u64 _);.entry k(.param .u64 p);\n.entry k(.param .u64 "
		"p) {",
	};
	char text[1000];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		snprintf(text, sizeof(text),
			 HEAD "%s .reg .b32 %%r1; .reg .b64 %%d1; mov.u32 %%r1, "
			      "%%ctaid.x; ret; }",
			 heads[i]);
		assert_int_equal(made(text, PTX_ENTRY, "%r1, %_hals_x"), 1);
	}
}

/* The files of faults/, which the assembler takes: what comes of their first kernel. */
static void faults(void **state)
{
	static const struct {
		const char *file;
		enum ptx_pass pass;
		const char *reason, *what; /* why not; else what is in the text */
	} rows[] = {
		{"entry_pragma", PTX_LOOP, NULL, "_hals_control"},
		{"func_reg_params", PTX_ENTRY, NULL, "_hals_control"},
		{"func_reg_params", PTX_BOUNDS,
		 "line 9: call.uni: calls a function, which cannot be checked", NULL},
		{"fwd_decl", PTX_BOUNDS, NULL, "_halb_astray\n);"},
		{"kernel_address", PTX_ENTRY, "line 15: the kernel's address is taken",
		 NULL},
		{"kernel_address", PTX_BOUNDS, "line 15: the kernel's address is taken",
		 NULL},
		{"loc_same_line", PTX_BOUNDS, NULL, "@%_halb_q st.global"},
		{"loc_same_line", PTX_ENTRY, NULL, "mov.u32 %r1, %_hals_x"},
		{"loop_alloca", PTX_LOOP, NULL, "stackrestore.u64 %_hals_s"},
		{"loop_dynamic_shared", PTX_LOOP, NULL, "barrier.red.or.pred"},
		{"poll_in_function", PTX_ENTRY,
		 "line 19: call.uni: calls a function in a loop", NULL},
		{"spin_ld_cg", PTX_ENTRY,
		 "line 11: bra: this loop may wait for another block", NULL},
		{"spin_atom_and", PTX_LOOP, "line 9: atom.global.and.b32: waits", NULL},
		{"spin_cas_same", PTX_LOOP, "line 9: atom.global.cas.b32: waits", NULL},
	};
	const bool first[2] = {true};
	char path[512], *text, *out;
	struct ptx *m;
	size_t i, bytes;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), PTX_TESTS "/faults/%s.ptx", rows[i].file);
		text = list_file(path, &bytes);
		if (ptx_parse(text, bytes, &m, why))
			fail_msg("%s: %s", path, why);
		out = NULL;
		assert_int_equal(ptx_rewrite(m, rows[i].pass, first, &out, &bytes, why),
				 rows[i].reason ? -ENOTSUP : 0);
		if (rows[i].reason ? !strstr(why, rows[i].reason)
				   : !strstr(out, rows[i].what))
			fail_msg("%s: %s", path, rows[i].reason ? why : out);
		free(out);
		free(text);
		ptx_free(m);
	}
}

/* Each declaration of a kernel gets the parameters that it has. */
static void declared(void **state)
{
	const char *text =
		HEAD ".entry k(.param .u64 p);\n.extern .entry other(.param .u64 p);\n"
		     ".entry k(.param .u64 p) { ret; }";

	(void)state;
	assert_int_equal(made(text, PTX_ENTRY, ".param .u64 _hals_control"), 2);
	assert_int_equal(made(text, PTX_BOUNDS, ".param .u64 _halb_astray"), 2);
	assert_int_equal(made(HEAD ".entry k;\n.entry k { ret; }", PTX_LOOP,
			      "k(\n\t.param .u64 _hals"),
			 2);
}

/* A kernel that something else may launch, and its neighbour. */
static void addresses(void **state)
{
	(void)state;
	body(".entry k { ret; }\n.global .u64 t[2] = {k, 0};", PTX_ENTRY,
	     "line 5: the kernel's address is taken");
	odd(".entry k { .reg .b64 %d; { mov.u64 %d, k; } ret; }",
	    "line 4: the kernel's address is taken");
	odd(".entry k { ret; }\n.func f() { .reg .b64 %d; mov.u64 %d, k; ret; }",
	    "line 5: the kernel's address is taken");
	odd(".entry k { ret; }\n.func f() { .strange; mov.u64 %d, k; ret; }",
	    "line 5: the kernel's address is taken");
	odd(".entry k();\n.func f() { .reg .b64 %d; mov.u64 %d, k; ret; }\n.entry k() { "
	    "ret; }",
	    "line 5: the kernel's address is taken");
	/* A register or a word of its name is none. */
	body(".entry add() { .reg .b32 %r; add.u32 %r, %r, 1; ret; }\n", PTX_ENTRY, NULL);
	body(".entry k() { .reg .b32 k; add.u32 k, k, 1; ret; }\n", PTX_ENTRY, NULL);
}

/* A kernel is refused for what it may call, not for what stands beside that. */
static void calls(void **state)
{
	static const char functions[] =
		".extern .func far();\n.func bad() { brkpt; }\n.func odd() { .strange; "
		"ret; }\n"
		".func slow() { call far; ret; }\n.func good() { ret; }\n.func also();\n"
		".alias also, good;\n.func late();\n";
	static const struct {
		const char *call, *reason;
	} rows[] = {
		{"call good;", NULL},
		{"call also;", NULL},
		{"call bad;", "line 5: brkpt: stops for a debugger"},
		{"call odd;", "line 6: unknown directive"},
		{"call slow;",
		 "line 4: the kernel may call far, which is defined elsewhere"},
		{"call far;",
		 "line 4: the kernel may call far, which is defined elsewhere"},
		{"call late;", "line 14: brkpt: stops for a debugger"},
		{"call a, (), p;", "line "},
	};
	char text[1000];
	size_t i, pass;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (pass = PTX_ENTRY; pass <= PTX_LOOP; pass++) {
			snprintf(text, sizeof(text),
				 "%s.entry k() {.reg .b64 a; p: .callprototype _ (); %s "
				 "ret; }\n\n"
				 ".func late() { brkpt; }",
				 functions, rows[i].call);
			body(text, (enum ptx_pass)pass, rows[i].reason);
		}
}

/* The innermost declaration of a name counts. */
static void scopes(void **state)
{
	const char *store = "@%_halb_q st.global.u32 [buf]";

	(void)state;
	assert_int_equal(made(HEAD ".global .b32 buf[4];\n.entry k { .reg .b64 buf; "
				   "mov.u64 buf, 4; st.global.u32 [buf], 1; ret; }",
			      PTX_BOUNDS, store),
			 1);
	assert_int_equal(made(HEAD ".global .b32 buf[4];\n.entry k { { .reg .b64 buf; } "
				   "st.global.u32 [buf], 1; ret; }",
			      PTX_BOUNDS, store),
			 0);
	body(".entry k { .reg .b64 a<2>; { .reg .b32 a1; { .reg .f32 a<2>; } "
	     "st.global.u32 [a1], 1; } ret; }",
	     PTX_BOUNDS, "not a 64-bit register");
	body(".entry k { .reg .v2 .b64 a; st.global.u32 [a], 1; ret; }", PTX_BOUNDS,
	     "not a 64-bit register");
	body(".entry k { .reg .v4 .b32 v; .reg .b64 a; ld.global.v4.b32 v, [a]; ret; }",
	     PTX_BOUNDS, "something other than a register");
	/* A register may be called as the block's number is. */
	assert_int_equal(made(HEAD ".entry k { .reg .v4 .b32 %ctaid; .reg .b32 r; "
				   "mov.u32 r, %ctaid.x; ret; }",
			      PTX_ENTRY, "mov.u32 r, %ctaid.x"),
			 1);
}

/* What there is for parameters goes by the version and the target. */
static void parameter_bytes(void **state)
{
	static const struct {
		const char *head;
		uint32_t most;
	} rows[] = {{".version 8.1\n.target sm_70\n", 32764},
		    {".version 9.0\n.target sm_90a\n", 32764},
		    {".version 8.1\n.target sm_60\n", 4352},
		    {".version 8.0\n.target sm_90\n", 4352},
		    {".version 8.5\n.target debug, sm_61\n", 4352}};
	char text[300];
	struct ptx *m;
	uint32_t i, more;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (more = 0; more < 2; more++) {
			snprintf(text, sizeof(text),
				 "%s.address_size 64\n.entry k(.param .align 8 .b8 "
				 "a[%u]) { ret; }",
				 rows[i].head, rows[i].most / 8 * 8 - 40 + more);
			assert_int_equal(parse(text, &m), 0);
			assert_int_equal(ptx_check(m, 0, PTX_ENTRY, why),
					 more ? -ENOTSUP : 0);
			assert_true(
				!more ||
				strstr(why, "leave no space for the 40 bytes to add"));
			ptx_free(m);
		}
}

/* Time is linear in kernels, variables and what they name: quadratic, this takes minutes.
 */
static void large(void **state)
{
	const uint32_t count = 20000;
	size_t room = 200 * (size_t)count, n, bytes;
	char *text = malloc(room), *out;
	struct ptx *m;
	uint32_t i;

	(void)state;
	assert_non_null(text);
	n = (size_t)snprintf(text, room, HEAD ".func f() { ret; }\n");
	for (i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, room - n, ".global .b32 v%u = 1;\n", i);
	for (i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, room - n,
				      ".entry k%u { .reg .b32 r; ld.global.b32 r, [v%u]; "
				      "st.global.b32 [v0], r; ret; }\n",
				      i, count - 1 - i);
	assert_int_equal(parse(text, &m), 0);
	for (i = 0; i < PTX_PASSES; i++) {
		assert_int_equal(rewrite(m, (enum ptx_pass)i, &out, &bytes), 0);
		free(out);
	}
	ptx_free(m);
	free(text);
}

static char *repeat(char *at, const char *line, uint32_t count)
{
	while (count-- > 0)
		at = stpcpy(at, line);
	return at;
}

/* The work is bounded also where each exit may be that of each compare-and-swap. */
static void many_retries(void **state)
{
	const uint32_t count = 200;
	char *text = malloc(200 * (size_t)count), *at;
	struct ptx *m;

	(void)state;
	assert_non_null(text);
	at = stpcpy(text, HEAD BEGIN "ld.param.u64 %d1, [k_0];\n"
				     "A: ld.global.u32 %r1, [%d1];\n"
				     "add.u32 %r5, %r5, 1;\n");
	at = repeat(at, "setp.ne.s32 %p1, %r2, %r3;\n", count);
	at = repeat(at, "atom.global.cas.b32 %r2, [%d1], %r1, %r4;\n", count);
	at = repeat(at, "@%p1 bra B;\n", count);
	(void)stpcpy(at, "setp.lt.u32 %p2, %r5, 100;\n@%p2 bra A;\nB: " END);
	assert_int_equal(parse(text, &m), 0);
	assert_int_equal(ptx_check(m, 0, PTX_ENTRY, why), -ENOTSUP);
	if (!strstr(why, "too large for the search for waiting loops"))
		fail_msg("not as too large: %s", why);
	ptx_free(m);
	free(text);
}

/* Cut anywhere it is refused or read, and nothing is read behind its end. */
static void cut(void **state)
{
	size_t bytes, n;
	char *text = list_file(PTX_TESTS "/kernels/ampere.ptx", &bytes);
	char *part;
	struct ptx *m;

	(void)state;
	for (n = 0; n < bytes; n += 3) {
		part = strndup(text, n);
		if (parse(part, &m) == 0)
			ptx_free(m);
		else
			assert_true(why[0] != 0);
		free(part);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreadable),
		cmocka_unit_test(odd_kernels),
		cmocka_unit_test(deep),
		cmocka_unit_test(stops_refused),
		cmocka_unit_test(waits),
		cmocka_unit_test(gets_on),
		cmocka_unit_test(modern),
		cmocka_unit_test(modern_bodies),
		cmocka_unit_test(dependents),
		cmocka_unit_test(votes),
		cmocka_unit_test(loop_refused),
		cmocka_unit_test(bounds_refused),
		cmocka_unit_test(color_refused),
		cmocka_unit_test(colors),
		cmocka_unit_test(colors_refused),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(astray),
		cmocka_unit_test(pointers),
		cmocka_unit_test(no_lines),
		cmocka_unit_test(heads),
		cmocka_unit_test(declared),
		cmocka_unit_test(faults),
		cmocka_unit_test(addresses),
		cmocka_unit_test(calls),
		cmocka_unit_test(scopes),
		cmocka_unit_test(parameter_bytes),
		cmocka_unit_test(large),
		cmocka_unit_test(many_retries),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
