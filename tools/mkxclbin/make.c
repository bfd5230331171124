/* SPDX-License-Identifier: Apache-2.0 */
/* An xclbin from a text. */
#define _GNU_SOURCE
#include "make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/fpga.h>

enum { BANKS_MAX = 64, KERNELS_MAX = 64, ARGS_MAX = 24, UNITS_MAX = 64, WORDS_MAX = 8 };
#define UNIT_BASE  UINT64_C(0x1800000)
#define UNIT_BYTES UINT64_C(0x10000)
#define FIRST_ARG  0x10u /* register of the first argument */

struct arg {
	char name[32], type[16];
	uint32_t bytes; /* of its register */
	bool memory;
	uint64_t least;
	uint64_t reach[UNITS_MAX];
};

struct kernel {
	char name[32];
	uint32_t units, arg_count;
	struct arg args[ARGS_MAX];
};

struct design {
	char platform[64];
	uint64_t bitstream;
	uint32_t bank_count, kernel_count;
	struct hal_xclbin_bank banks[BANKS_MAX];
	struct kernel kernels[KERNELS_MAX];
	unsigned int line;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static int wrong(struct design *d, const char *fmt,
						       ...)
{
	va_list ap;
	int n = snprintf(d->why, d->why_bytes, "line %u: ", d->line);

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < d->why_bytes)
		/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was begun */
		vsnprintf(d->why + n, d->why_bytes - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- reading ------------------------------------------------------------------------- */

static int take_number(struct design *d, const char *word, uint64_t most, uint64_t *to)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	char *end;

	errno = 0;
	*to = strtoull(word, &end, 0);
	if (*end && end[1] == 0) {
		suffix = strchr(suffixes, *end);
		if (suffix) {
			*to <<= 10 * (suffix - suffixes + 1);
			end++;
		}
	}
	if (end == word || *end || errno || *word == '-' || *to > most)
		return wrong(d, "\"%s\" is not a number up to %" PRIu64, word, most);
	return 0;
}

static int take_name(struct design *d, const char *word, char *to, size_t room)
{
	if (strlen(word) >= room)
		return wrong(d, "\"%s\" is longer than %zu characters", word, room - 1);
	memcpy(to, word, strlen(word) + 1);
	return 0;
}

/* 0-3,5 */
static int take_banks(struct design *d, const char *word, uint64_t *mask)
{
	unsigned int first, last;
	char *end;

	*mask = 0;
	do {
		first = last = (unsigned int)strtoul(word, &end, 10);
		if (end != word && *end == '-')
			last = (unsigned int)strtoul(end + 1, &end, 10);
		if (end == word)
			return wrong(d, "\"%s\" is not a list of banks", word);
		if (first > last || last >= d->bank_count)
			return wrong(d, "banks %u to %u do not exist; there are %u",
				     first, last, d->bank_count);
		for (; first <= last; first++)
			*mask |= UINT64_C(1) << first;
		word = end;
	} while (*word == ',' && *++word);
	return *word ? wrong(d, "\"%s\" is not a list of banks", word) : 0;
}

static int read_bank(struct design *d, char **words)
{
	static const struct {
		const char *name;
		uint8_t type;
	} types[] = {{"ddr4", HAL_XCLBIN_DDR4},
		     {"hbm", HAL_XCLBIN_HBM},
		     {"bram", HAL_XCLBIN_BRAM},
		     {"streaming", HAL_XCLBIN_STREAMING}};
	struct hal_xclbin_bank *b = &d->banks[d->bank_count];
	uint64_t bytes = 0;
	size_t i = 0;
	int err;

	if (d->bank_count == BANKS_MAX)
		return wrong(d, "more than %u banks", BANKS_MAX);
	while (i < sizeof(types) / sizeof(types[0]) &&
	       strcmp(types[i].name, words[2]) != 0)
		i++;
	if (i == sizeof(types) / sizeof(types[0]))
		return wrong(d, "\"%s\" is not a type of memory", words[2]);
	err = take_name(d, words[1], b->tag, sizeof(b->tag));
	if (!err)
		err = take_number(d, words[3], UINT64_MAX, &b->base);
	if (!err)
		err = take_number(d, words[4], UINT64_C(1) << 44, &bytes);
	b->type = types[i].type;
	b->used = 1;
	b->kbytes = bytes / 1024;
	d->bank_count += !err;
	return err;
}

static int read_kernel(struct design *d, char **words)
{
	struct kernel *k = &d->kernels[d->kernel_count];
	uint64_t units = 0;
	int err;

	if (d->kernel_count == KERNELS_MAX)
		return wrong(d, "more than %u kernels", KERNELS_MAX);
	err = take_name(d, words[1], k->name, sizeof(k->name));
	if (!err)
		err = take_number(d, words[2], UNITS_MAX, &units);
	k->units = (uint32_t)units;
	d->kernel_count += !err;
	return err;
}

static int read_memory(struct design *d, struct arg *a, char **words, size_t count)
{
	uint64_t mask = 0;
	uint32_t i;
	int err = 0;

	a->memory = true;
	a->bytes = 8;
	snprintf(a->type, sizeof(a->type), "void*");
	if (count == 5)
		err = take_number(d, words[3], UINT64_MAX, &a->least);
	if (!err)
		err = take_banks(d, words[count - 1], &mask);
	for (i = 0; i < UNITS_MAX; i++)
		a->reach[i] = mask;
	return err;
}

static int read_arg(struct design *d, char **words, size_t count)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} types[] = {{"char", 1}, {"short", 2}, {"int", 4},   {"uint", 4},
		     {"long", 8}, {"ulong", 8}, {"float", 4}, {"double", 8}};
	struct kernel *k;
	struct arg *a;
	size_t i;
	int err;

	if (!d->kernel_count)
		return wrong(d, "an argument without a kernel before it");
	k = &d->kernels[d->kernel_count - 1];
	a = &k->args[k->arg_count];
	if (k->arg_count == ARGS_MAX)
		return wrong(d, "more than %u arguments", ARGS_MAX);
	err = take_name(d, words[1], a->name, sizeof(a->name));
	if (err)
		return err;
	k->arg_count++;
	if (strcmp(words[2], "memory") == 0)
		return count < 4
			       ? wrong(d,
				       "the banks that the argument reaches are missing")
			       : read_memory(d, a, words, count);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, words[2]) == 0)
			break;
	if (i == sizeof(types) / sizeof(types[0]))
		return wrong(d, "\"%s\" is not a type of argument", words[2]);
	a->bytes = types[i].bytes;
	return take_name(d, words[2], a->type, sizeof(a->type));
}

static int read_reach(struct design *d, char **words)
{
	struct kernel *k;
	uint64_t unit = 0;
	uint32_t i;
	int err;

	if (!d->kernel_count)
		return wrong(d, "reach without a kernel before it");
	k = &d->kernels[d->kernel_count - 1];
	err = take_number(d, words[1], k->units, &unit);
	if (err || !unit)
		return err ? err : wrong(d, "units are counted from 1");
	for (i = 0; i < k->arg_count; i++)
		if (k->args[i].memory && strcmp(k->args[i].name, words[2]) == 0)
			return take_banks(d, words[3], &k->args[i].reach[unit - 1]);
	return wrong(d, "kernel %s has no memory argument %s", k->name, words[2]);
}

static int read_line(struct design *d, char *line)
{
	static const struct {
		const char *name;
		size_t least, most;
	} verbs[] = {{"platform", 2, 2}, {"bank", 5, 5}, {"bitstream", 2, 2},
		     {"kernel", 3, 3},   {"arg", 3, 5},  {"reach", 4, 4}};
	char *words[WORDS_MAX], *save = NULL;
	size_t count = 0, i;

	line[strcspn(line, "#")] = 0;
	for (words[0] = strtok_r(line, " \t\r", &save); words[count];
	     words[count] = strtok_r(NULL, " \t\r", &save))
		if (++count == WORDS_MAX)
			return wrong(d, "too many words");
	if (!count)
		return 0;
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, words[0]) == 0)
			break;
	if (i == sizeof(verbs) / sizeof(verbs[0]))
		return wrong(d,
			     "\"%s\" is unknown; platform, bank, bitstream, kernel, arg "
			     "or reach expected",
			     words[0]);
	if (count < verbs[i].least || count > verbs[i].most)
		return wrong(d, "%s has the wrong number of words, %zu", words[0],
			     count - 1);
	switch (i) {
	case 0:
		return take_name(d, words[1], d->platform, sizeof(d->platform));
	case 1:
		return read_bank(d, words);
	case 2:
		return take_number(d, words[1], 1u << 30, &d->bitstream);
	case 3:
		return read_kernel(d, words);
	case 4:
		return read_arg(d, words, count);
	default:
		return read_reach(d, words);
	}
}

static int read_all(struct design *d, const char *text)
{
	char line[256];
	int err = 0;

	while (!err && *text) {
		const size_t n = strcspn(text, "\n");

		d->line++;
		if (n >= sizeof(line))
			return wrong(d, "longer than %zu characters", sizeof(line) - 1);
		memcpy(line, text, n);
		line[n] = 0;
		err = read_line(d, line);
		text += n + (text[n] == '\n');
	}
	return err;
}

/* ---- writing ------------------------------------------------------------------------- */

/* What fails is seen at the end. */
static void put(FILE *f, const void *data, size_t bytes, size_t count)
{
	(void)!fwrite(data, bytes, count, f);
}

static void write_arg(FILE *f, const struct arg *a, uint32_t id, uint32_t offset)
{
	fprintf(f,
		"<arg name=\"%s\" addressQualifier=\"%d\" id=\"%u\" port=\"%s\" "
		"size=\"0x%x\" offset=\"0x%x\" hostOffset=\"0x0\" hostSize=\"0x%x\" "
		"type=\"%s\"/>",
		a->name, a->memory, id, a->memory ? "M_AXI_GMEM" : "S_AXI_CONTROL",
		a->bytes, offset, a->bytes, a->type);
}

static void write_kernel(FILE *f, const struct kernel *k, uint64_t base)
{
	uint32_t i, offset = FIRST_ARG;

	fprintf(f,
		"<kernel name=\"%s\" language=\"c\" attributes=\"\" "
		"hwControlProtocol=\"ap_ctrl_hs\" workGroupSize=\"1\" interrupt=\"true\" "
		"type=\"pl\">"
		"<port name=\"M_AXI_GMEM\" mode=\"master\" range=\"0xFFFFFFFFFFFFFFFF\" "
		"dataWidth=\"512\" portType=\"addressable\" base=\"0x0\"/>"
		"<port name=\"S_AXI_CONTROL\" mode=\"slave\" range=\"0x1000\" "
		"dataWidth=\"32\" portType=\"addressable\" base=\"0x0\"/>",
		k->name);
	for (i = 0; i < k->arg_count; i++) {
		write_arg(f, &k->args[i], i, offset);
		offset += k->args[i].bytes == 8 ? 12 : 8;
	}
	for (i = 0; i < k->units; i++)
		fprintf(f,
			"<instance name=\"%s_%u\"><addrRemap base=\"0x%" PRIx64
			"\" range=\"0x%" PRIx64 "\" port=\"S_AXI_CONTROL\"/></instance>",
			k->name, i + 1, base + i * UNIT_BYTES, UNIT_BYTES);
	fprintf(f, "</kernel>");
}

static void write_metadata(FILE *f, const struct design *d)
{
	uint64_t base = UNIT_BASE;
	uint32_t i;

	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?><project name=\"hal\">"
		"<platform vendor=\"hal\" boardid=\"hal\" name=\"%s\" version=\"1\">"
		"<device name=\"fpga0\"><core name=\"OCL_REGION_0\" target=\"hw\" "
		"type=\"clc_region\" clockFreq=\"300MHz\"><kernelClocks>"
		"<clock port=\"DATA_CLK\" frequency=\"300MHz\"/>"
		"<clock port=\"KERNEL_CLK\" frequency=\"500MHz\"/></kernelClocks>",
		d->platform);
	for (i = 0; i < d->kernel_count; i++) {
		write_kernel(f, &d->kernels[i], base);
		base += d->kernels[i].units * UNIT_BYTES;
	}
	fprintf(f, "</core></device></platform></project>");
}

static void write_count(FILE *f, uint32_t count, size_t head)
{
	const uint32_t words[2] = {count, 0};

	put(f, words, 1, head);
}

static void write_banks(FILE *f, const struct design *d)
{
	write_count(f, d->bank_count, 8);
	put(f, d->banks, sizeof(d->banks[0]), d->bank_count);
}

static void write_units(FILE *f, const struct design *d)
{
	struct hal_xclbin_ip ip;
	uint32_t k, i, n = 0;

	for (k = 0; k < d->kernel_count; k++)
		n += d->kernels[k].units;
	write_count(f, n, 8);
	n = 0;
	for (k = 0; k < d->kernel_count; k++)
		for (i = 0; i < d->kernels[k].units; i++) {
			memset(&ip, 0, sizeof(ip));
			ip.type = HAL_XCLBIN_IP_KERNEL;
			ip.base = UNIT_BASE + n++ * UNIT_BYTES;
			snprintf(ip.name, sizeof(ip.name), "%s:%s_%u", d->kernels[k].name,
				 d->kernels[k].name, i + 1);
			put(f, &ip, sizeof(ip), 1);
		}
}

/* How many there are; written where f is not NULL. */
static uint32_t each_connection(FILE *f, const struct design *d)
{
	uint32_t k, u, a, n = 0, ip = 0, bank;

	for (k = 0; k < d->kernel_count; k++)
		for (u = 0; u < d->kernels[k].units; u++, ip++)
			for (a = 0; a < d->kernels[k].arg_count; a++)
				for (bank = 0; bank < d->bank_count; bank++) {
					const struct hal_xclbin_connection c = {
						(int32_t)a, (int32_t)ip, (int32_t)bank};

					if (!(d->kernels[k].args[a].reach[u] >> bank & 1))
						continue;
					n++;
					if (f)
						put(f, &c, sizeof(c), 1);
				}
	return n;
}

static void write_connections(FILE *f, const struct design *d)
{
	write_count(f, each_connection(NULL, d), 4);
	(void)each_connection(f, d);
}

static void write_bytes(FILE *f, const struct design *d)
{
	uint32_t k, a;

	fprintf(f, "#hal-bytes\n");
	for (k = 0; k < d->kernel_count; k++)
		for (a = 0; a < d->kernels[k].arg_count; a++)
			if (d->kernels[k].args[a].least)
				fprintf(f, "%s %u %" PRIu64 "\n", d->kernels[k].name, a,
					d->kernels[k].args[a].least);
}

static void write_bitstream(FILE *f, const struct design *d)
{
	uint64_t i;

	for (i = 0; i < d->bitstream; i++)
		fputc((int)(i & 0xff), f);
}

static const struct {
	uint32_t kind;
	const char *name;
	void (*write)(FILE *f, const struct design *d);
} sections[] = {
	{HAL_XCLBIN_BITSTREAM, "bits", write_bitstream},
	{HAL_XCLBIN_EMBEDDED_METADATA, "meta", write_metadata},
	{HAL_XCLBIN_MEM_TOPOLOGY, "mem", write_banks},
	{HAL_XCLBIN_GROUP_TOPOLOGY, "gmem", write_banks},
	{HAL_XCLBIN_CONNECTIVITY, "conn", write_connections},
	{HAL_XCLBIN_GROUP_CONNECTIVITY, "gconn", write_connections},
	{HAL_XCLBIN_IP_LAYOUT, "ip", write_units},
	{HAL_XCLBIN_USER_METADATA, "user", write_bytes},
};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static void fill_head(struct hal_xclbin_head *h, const struct design *d)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, HAL_XCLBIN_MAGIC, sizeof(h->magic));
	h->signature_length = -1;
	memset(h->reserved, 0xff, sizeof(h->reserved));
	h->version_major = 2;
	h->version_minor = 13;
	h->mode = HAL_XCLBIN_MODE_PR;
	memcpy(h->platform, d->platform, sizeof(h->platform));
	h->section_count = SECTIONS;
}

/* Of other content another, of the same the same (FNV-1a, twice). */
static void make_uuid(uint8_t *uuid, const uint8_t *p, size_t size)
{
	uint64_t hash[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};
	size_t i;

	for (i = 0; i < 2 * size; i++)
		hash[i & 1] = (hash[i & 1] ^ p[i / 2]) * UINT64_C(0x100000001b3);
	memcpy(uuid, hash, sizeof(hash));
}

static int write_all(const struct design *d, void **file, size_t *size)
{
	struct hal_xclbin_section table[SECTIONS];
	struct hal_xclbin_head head;
	FILE *f = open_memstream((char **)file, size);
	size_t i;
	bool bad;

	if (!f)
		return -ENOMEM;
	memset(table, 0, sizeof(table));
	fill_head(&head, d);
	put(f, &head, sizeof(head), 1);
	put(f, table, sizeof(table), 1);
	for (i = 0; i < SECTIONS; i++) {
		while (ftell(f) % 8)
			fputc(0, f);
		table[i].kind = sections[i].kind;
		memcpy(table[i].name, sections[i].name, strlen(sections[i].name));
		table[i].offset = (uint64_t)ftell(f);
		sections[i].write(f, d);
		table[i].bytes = (uint64_t)ftell(f) - table[i].offset;
	}
	bad = ferror(f) != 0;
	if (fclose(f) || bad) {
		free(*file);
		return -ENOMEM;
	}
	head.bytes = *size;
	memcpy((char *)*file + sizeof(head), table, sizeof(table));
	memcpy(*file, &head, sizeof(head));
	make_uuid(head.uuid, *file, *size);
	memcpy(*file, &head, sizeof(head));
	return 0;
}

int mkxclbin(const char *text, void **file, size_t *size, char *why, size_t why_bytes)
{
	struct design *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	*file = NULL;
	snprintf(why, why_bytes, "no memory");
	if (d) {
		d->why = why;
		d->why_bytes = why_bytes;
		snprintf(d->platform, sizeof(d->platform), "hal_stand_in_1");
		err = read_all(d, text);
	}
	if (!err)
		err = write_all(d, file, size);
	free(d);
	return err;
}
