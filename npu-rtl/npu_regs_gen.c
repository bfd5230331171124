/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_regs_gen.c - expands npu_regs.def, the one table of registers, descriptors and
 * codes:
 *
 *   npu_regs_gen sv > npu_regs_pkg.sv     package npu_regs_pkg for the RTL
 *   npu_regs_gen h  > npu_regs.h          the same values for C
 *   npu_regs_gen md > npu-registers.md    the page kept as docs/npu-registers.md
 *
 * The first two are made by the build and never kept; the page is kept, and a test holds
 * it and both generated files together.
 *
 *   SV                               C
 *   GLB_CTRL_ADDR [15:0]             NPU_GLB_CTRL_ADDR
 *   SLOT_TAIL_OFF [11:0] (in page)   NPU_SLOT_TAIL_OFF, NPU_SLOT_ADDR(slot, TAIL)
 *   SLOT_BASE, _STRIDE, _COUNT       NPU_SLOT_BASE ...
 *   GLB_XMASK_ADDR, GLB_XMASK_N      NPU_GLB_XMASK_ADDR, NPU_GLB_XMASK_N
 *   GLB_TIMING_RESET [31:0]          NPU_GLB_TIMING_RESET
 *   SLOT_CNT_IDLE_INDEX, _CNT_COUNT  - (of 64-bit counters, from the first on)
 *   CTRL_IDEAL_LSB, CTRL_IDEAL_W     NPU_CTRL_IDEAL_LSB, NPU_REG_GET(value, CTRL_IDEAL)
 *   FAULT_BOUNDS, OP_CONV, VOP_ADD   NPU_FAULT_BOUNDS ...
 *   DESC_PANEL_WORD, _LSB, _W, _BIT  NPU_DESC_PANEL_WORD ..., NPU_SET(desc, PANEL, value)
 */
#include <stdio.h>
#include <string.h>

enum kind { PAGE_ROW, REG_ROW, ARRAY_ROW, FIELD_ROW, DESC_ROW, CODE_ROW };

struct row {
	enum kind kind;
	const char *group; /* page of a register, register of a field, group of a code */
	const char *name;
	const char *access;    /* registers */
	unsigned long a, b, c; /* in the order of the table */
	const char *doc;
};

#define PAGE(name, base, stride, count, doc)                                             \
	{PAGE_ROW, "", #name, "", (base), (stride), (count), (doc)},
#define REG(page, name, offset, access, reset, doc)                                      \
	{REG_ROW, #page, #name, #access, (offset), (reset), 1, (doc)},
#define ARRAY(page, name, offset, access, n, doc)                                        \
	{ARRAY_ROW, #page, #name, #access, (offset), 0, (n), (doc)},
#define FIELD(reg, name, lsb, width, doc)                                                \
	{FIELD_ROW, #reg, #name, "", (lsb), (width), 0, (doc)},
#define DESC(name, word, lsb, width, doc)                                                \
	{DESC_ROW, "", #name, "", (word), (lsb), (width), (doc)},
#define CODE(group, name, value, doc) {CODE_ROW, #group, #name, "", (value), 0, 0, (doc)},

static const struct row rows[] = {
#include "npu_regs.def"
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const struct row *find_page(const char *name)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].kind == PAGE_ROW && !strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* Bits of a code in the RTL. */
static unsigned code_width(const char *group)
{
	if (!strcmp(group, "OP") || !strcmp(group, "VOP"))
		return 8;
	if (!strcmp(group, "MAP"))
		return 2;
	if (!strcmp(group, "PTE"))
		return 32;
	return 4;
}

/* ---- SystemVerilog ---------------------------------------------------------------- */

static void sv_register(const struct row *r)
{
	const struct row *page = find_page(r->group);

	if (page->c == 1)
		printf("  localparam logic [15:0] %s_%s_ADDR = 16'h%04lX;\n", r->group,
		       r->name, page->a + r->a);
	else
		printf("  localparam logic [11:0] %s_%s_OFF = 12'h%03lX;\n", r->group,
		       r->name, r->a);
	if (r->kind == ARRAY_ROW)
		printf("  localparam int unsigned %s_%s_N = %lu;\n", r->group, r->name,
		       r->c);
	else
		printf("  localparam logic [31:0] %s_%s_RESET = 32'h%08lX;\n", r->group,
		       r->name, r->b);
}

/* The number of 64-bit counters up to r, which stand behind each other in the table, or
 * of all (NULL). */
static unsigned long counters(const struct row *r)
{
	unsigned long n = 0;

	for (const struct row *i = rows; i < rows + ROW_COUNT && i != r; i++)
		n += i->kind == ARRAY_ROW && strncmp(i->name, "CNT_", 4) == 0;
	return n;
}

static void sv_row(const struct row *r)
{
	switch (r->kind) {
	case PAGE_ROW:
		printf("\n  // %s: %s\n", r->name, r->doc);
		printf("  localparam logic [15:0] %s_BASE = 16'h%04lX;\n", r->name, r->a);
		printf("  localparam int unsigned %s_STRIDE = %lu;\n", r->name, r->b);
		printf("  localparam int unsigned %s_COUNT = %lu;\n", r->name, r->c);
		break;
	case REG_ROW:
	case ARRAY_ROW:
		sv_register(r);
		if (strncmp(r->name, "CNT_", 4) == 0)
			printf("  localparam int unsigned %s_%s_INDEX = %lu;\n", r->group,
			       r->name, counters(r));
		break;
	case FIELD_ROW:
		printf("  localparam int unsigned %s_%s_LSB = %lu;\n", r->group, r->name,
		       r->a);
		printf("  localparam int unsigned %s_%s_W = %lu;\n", r->group, r->name,
		       r->b);
		break;
	case DESC_ROW:
		printf("  localparam int unsigned DESC_%s_WORD = %lu;\n", r->name, r->a);
		printf("  localparam int unsigned DESC_%s_LSB = %lu;\n", r->name, r->b);
		printf("  localparam int unsigned DESC_%s_W = %lu;\n", r->name, r->c);
		printf("  localparam int unsigned DESC_%s_BIT = %lu;\n", r->name,
		       r->a * 32 + r->b);
		break;
	case CODE_ROW:
		if (!strcmp(r->name, "PAGE_LSB"))
			printf("  localparam int unsigned %s_%s = %lu;\n", r->group,
			       r->name, r->a);
		else
			printf("  localparam logic [%u:0] %s_%s = %u'h%lX;\n",
			       code_width(r->group) - 1, r->group, r->name,
			       code_width(r->group), r->a);
		break;
	}
}

static void print_sv(void)
{
	printf("// SPDX-License-Identifier: Apache-2.0\n"
	       "// Made from npu_regs.def by npu_regs_gen; do not edit.\n"
	       "// verilator lint_off UNUSEDPARAM\n"
	       "package npu_regs_pkg;");
	for (size_t i = 0; i < ROW_COUNT; i++)
		sv_row(&rows[i]);
	printf("\n  localparam int unsigned SLOT_CNT_COUNT = %lu;\n", counters(NULL));
	printf("endpackage\n// verilator lint_on UNUSEDPARAM\n");
}

/* ---- C ---------------------------------------------------------------------------- */

static void h_register(const struct row *r)
{
	const struct row *page = find_page(r->group);

	printf("#define NPU_%s_%s_OFF 0x%03lXu\n", r->group, r->name, r->a);
	if (page->c == 1)
		printf("#define NPU_%s_%s_ADDR 0x%04lXu\n", r->group, r->name,
		       page->a + r->a);
	if (r->kind == ARRAY_ROW)
		printf("#define NPU_%s_%s_N %luu\n", r->group, r->name, r->c);
	else
		printf("#define NPU_%s_%s_RESET 0x%08lXu\n", r->group, r->name, r->b);
}

static void h_row(const struct row *r)
{
	switch (r->kind) {
	case PAGE_ROW:
		printf("\n/* %s: %s */\n", r->name, r->doc);
		printf("#define NPU_%s_BASE 0x%04lXu\n", r->name, r->a);
		printf("#define NPU_%s_STRIDE %luu\n", r->name, r->b);
		printf("#define NPU_%s_COUNT %luu\n", r->name, r->c);
		break;
	case REG_ROW:
	case ARRAY_ROW:
		h_register(r);
		break;
	case FIELD_ROW:
		printf("#define NPU_%s_%s_LSB %luu\n", r->group, r->name, r->a);
		printf("#define NPU_%s_%s_W %luu\n", r->group, r->name, r->b);
		break;
	case DESC_ROW:
		printf("#define NPU_DESC_%s_WORD %luu\n", r->name, r->a);
		printf("#define NPU_DESC_%s_LSB %luu\n", r->name, r->b);
		printf("#define NPU_DESC_%s_W %luu\n", r->name, r->c);
		break;
	case CODE_ROW:
		printf("#define NPU_%s_%s %luu\n", r->group, r->name, r->a);
		break;
	}
}

static const char h_helpers[] =
	"\n"
	"/* ---- helpers ---- */\n"
	"\n"
	"static inline uint32_t npu_mask(uint32_t width)\n"
	"{\n"
	"\treturn width >= 32 ? 0xFFFFFFFFu : (1u << width) - 1u;\n"
	"}\n"
	"\n"
	"/* Bits of value above the field's width are dropped. */\n"
	"static inline void npu_desc_set(uint32_t *d, uint32_t word, uint32_t lsb,\n"
	"\t\t\t\tuint32_t width, uint32_t value)\n"
	"{\n"
	"\tuint32_t mask = npu_mask(width) << lsb;\n"
	"\n"
	"\td[word] = (d[word] & ~mask) | ((value << lsb) & mask);\n"
	"}\n"
	"\n"
	"static inline uint32_t npu_desc_get(const uint32_t *d, uint32_t word, uint32_t "
	"lsb,\n"
	"\t\t\t\t    uint32_t width)\n"
	"{\n"
	"\treturn (d[word] >> lsb) & npu_mask(width);\n"
	"}\n"
	"\n"
	"/* A descriptor's field: NPU_SET(desc, PANEL, 512), NPU_GET(desc, PANEL). */\n"
	"#define NPU_SET(desc, field, value)                                            "
	"\\\n"
	"\tnpu_desc_set((desc), NPU_DESC_##field##_WORD, NPU_DESC_##field##_LSB,    \\\n"
	"\t\t     NPU_DESC_##field##_W, (uint32_t)(value))\n"
	"#define NPU_GET(desc, field)                                                   "
	"\\\n"
	"\tnpu_desc_get((desc), NPU_DESC_##field##_WORD, NPU_DESC_##field##_LSB,    \\\n"
	"\t\t     NPU_DESC_##field##_W)\n"
	"\n"
	"/* A register's field: NPU_REG_GET(value, STATUS_STATE), "
	"NPU_REG_BITS(CTRL_IDEAL, 1). */\n"
	"#define NPU_REG_GET(value, field)                                              "
	"\\\n"
	"\t(((uint32_t)(value) >> NPU_##field##_LSB) & npu_mask(NPU_##field##_W))\n"
	"#define NPU_REG_BITS(field, value)                                             "
	"\\\n"
	"\t(((uint32_t)(value) & npu_mask(NPU_##field##_W)) << NPU_##field##_LSB)\n"
	"\n"
	"/* Addresses: NPU_SLOT_ADDR(2, TAIL), NPU_CHAN_ADDR(0, CH_READS), "
	"NPU_GLB_AT(RECT, 3). */\n"
	"#define NPU_SLOT_ADDR(slot, reg)                                               "
	"\\\n"
	"\t(NPU_SLOT_BASE + (uint32_t)(slot) * NPU_SLOT_STRIDE + NPU_SLOT_##reg##_OFF)\n"
	"#define NPU_CHAN_ADDR(chan, reg)                                               "
	"\\\n"
	"\t(NPU_CHAN_BASE + (uint32_t)(chan) * NPU_CHAN_STRIDE + NPU_CHAN_##reg##_OFF)\n"
	"#define NPU_GLB_AT(reg, i) (NPU_GLB_##reg##_ADDR + (uint32_t)(i) * 4u)\n";

static void print_h(void)
{
	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "/* Made from npu_regs.def by npu_regs_gen; do not edit. */\n"
	       "#ifndef NPU_REGS_H\n#define NPU_REGS_H\n\n#include <stdint.h>\n");
	for (size_t i = 0; i < ROW_COUNT; i++)
		h_row(&rows[i]);
	fputs(h_helpers, stdout);
	printf("\n#endif\n");
}

/* ---- documentation ---------------------------------------------------------------- */

/* A table cell: | would end it. */
static void md_text(const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			putchar('\\');
		putchar(*s);
	}
}

static void md_bits(unsigned long lsb, unsigned long width)
{
	if (width == 1)
		printf("%lu", lsb);
	else
		printf("%lu:%lu", lsb + width - 1, lsb);
}

static void md_fields(const char *reg)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];

		if (r->kind != FIELD_ROW || strcmp(r->group, reg) != 0)
			continue;
		printf("| | `.%s` | ", r->name);
		md_bits(r->a, r->b);
		printf(" | | ");
		md_text(r->doc);
		printf(" |\n");
	}
}

static void md_page(const struct row *page)
{
	printf("\n## %s\n\n%s.\n\n", page->name, page->doc);
	if (page->c == 1)
		printf("At 0x%04lX.\n\n", page->a);
	else
		printf("%lu of them, copy i at 0x%04lX + i * 0x%lX.\n\n", page->c,
		       page->a, page->b);
	printf("| offset | register | access, bits | reset | |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];

		if ((r->kind != REG_ROW && r->kind != ARRAY_ROW) ||
		    strcmp(r->group, page->name) != 0)
			continue;
		printf("| 0x%03lX | `%s`", r->a, r->name);
		if (r->kind == ARRAY_ROW)
			printf(" x %lu", r->c);
		printf(" | %s | 0x%lX | ", r->access, r->b);
		md_text(r->doc);
		printf(" |\n");
		md_fields(r->name);
	}
}

static void md_codes(const char *group)
{
	printf("\n### %s\n\n| code | value | |\n|---|---|---|\n", group);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].kind != CODE_ROW || strcmp(rows[i].group, group) != 0)
			continue;
		printf("| `%s_%s` | %lu | ", group, rows[i].name, rows[i].a);
		md_text(rows[i].doc);
		printf(" |\n");
	}
}

static void print_md(void)
{
	const char *group = "";

	printf("# Registers and descriptors of the NPU\n\n"
	       "Made from `npu-rtl/npu_regs.def` by `npu_regs_gen md`; do not edit. "
	       "Registers are 32 bits wide;\n64-bit counters have their low word "
	       "first.\n");
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].kind == PAGE_ROW)
			md_page(&rows[i]);
	printf("\n## Descriptor\n\n64 bytes, sixteen 32-bit words. Fields that share "
	       "bits "
	       "belong to different operations.\n\n"
	       "| word | bits | field | |\n|---|---|---|---|\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].kind != DESC_ROW)
			continue;
		printf("| %lu | ", rows[i].a);
		md_bits(rows[i].b, rows[i].c);
		printf(" | `%s` | ", rows[i].name);
		md_text(rows[i].doc);
		printf(" |\n");
	}
	printf("\n## Codes\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].kind != CODE_ROW || !strcmp(rows[i].group, group))
			continue;
		group = rows[i].group;
		md_codes(group);
	}
}

/* Whether r stands where its number among the 64-bit counters says. */
static int counter_ok(const struct row *r)
{
	const struct row *first = rows;

	while (first->kind != ARRAY_ROW || strncmp(first->name, "CNT_", 4) != 0)
		first++;
	return !strcmp(r->group, first->group) && r->c == 2 &&
	       r->a == first->a + 8 * counters(r);
}

/* The table is source: a register on a page that does not exist stops the build here. */
static int table_ok(void)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];

		if ((r->kind == REG_ROW || r->kind == ARRAY_ROW) &&
		    !find_page(r->group)) {
			fprintf(stderr, "npu_regs_gen: %s: no page %s\n", r->name,
				r->group);
			return 0;
		}
		if (r->kind == ARRAY_ROW && strncmp(r->name, "CNT_", 4) == 0 &&
		    !counter_ok(r)) {
			fprintf(stderr,
				"npu_regs_gen: %s is not behind the counter "
				"before it\n",
				r->name);
			return 0;
		}
		if (r->kind == DESC_ROW && (r->a > 15 || r->b + r->c > 32)) {
			fprintf(stderr,
				"npu_regs_gen: descriptor field %s leaves its word\n",
				r->name);
			return 0;
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (!table_ok())
		return 1;
	if (argc == 2 && !strcmp(argv[1], "sv"))
		print_sv();
	else if (argc == 2 && !strcmp(argv[1], "h"))
		print_h();
	else if (argc == 2 && !strcmp(argv[1], "md"))
		print_md();
	else {
		fprintf(stderr, "usage: npu_regs_gen sv|h|md > file\n");
		return 2;
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
