/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration.  Nobody has looked at the file before: every offset, count and
 * index is checked where it is read, and a text says what is wrong and where.
 */
#define _GNU_SOURCE
#include "xclbin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct hal_xclbin_section) == 40, "as drivers have it");
_Static_assert(sizeof(struct hal_xclbin_head) == 456, "as drivers have it");
_Static_assert(sizeof(struct hal_xclbin_bank) == 40, "as drivers have it");
_Static_assert(sizeof(struct hal_xclbin_ip) == 80, "as drivers have it");

struct reader {
	const uint8_t *file;
	uint64_t size;
	struct fp_xclbin *x;
	char *why;
	size_t why_bytes;
	uint64_t ip_count;
	const uint8_t *ips;
	/* Of each kernel unit of the layout: its kernel and slot. */
	struct {
		int32_t kernel; /* -1: no kernel's */
		uint32_t slot;
	} ip[FP_KERNELS_MAX * FP_SLOTS_MAX];
};

__attribute__((format(printf, 2, 3))) static int wrong(struct reader *r, const char *fmt,
						       ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	vsnprintf(r->why, r->why_bytes, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Text of a field that may fill all of it, printable. */
static void take_text(char *to, size_t room, const char *from, size_t bytes)
{
	size_t i;

	for (i = 0; i + 1 < room && i < bytes && from[i]; i++) {
		to[i] = from[i];
		if ((unsigned char)to[i] < ' ' || (unsigned char)to[i] > '~')
			to[i] = '?';
	}
	to[i] = 0;
}

/* ---- sections ---------------------------------------------------------------------- */

static int check_head(struct reader *r)
{
	struct hal_xclbin_head h;
	uint64_t table;

	if (r->size < sizeof(h))
		return wrong(r,
			     "%" PRIu64
			     " bytes are not an xclbin: the header alone has %zu",
			     r->size, sizeof(h));
	memcpy(&h, r->file, sizeof(h));
	if (memcmp(h.magic, HAL_XCLBIN_MAGIC, sizeof(h.magic)) != 0)
		return wrong(r, "no xclbin: it does not begin with \"" HAL_XCLBIN_MAGIC
				"\"");
	if (h.bytes > r->size)
		return wrong(r, "truncated: %" PRIu64 " of %" PRIu64 " bytes", r->size,
			     h.bytes);
	table = (uint64_t)h.section_count * sizeof(struct hal_xclbin_section);
	if (h.section_count > HAL_XCLBIN_SECTIONS_MAX || table > h.bytes ||
	    sizeof(h) > h.bytes - table)
		return wrong(r, "%u sections do not fit into %" PRIu64 " bytes",
			     h.section_count, h.bytes);
	r->size = h.bytes;
	memcpy(r->x->uuid, h.uuid, sizeof(h.uuid));
	take_text(r->x->platform, sizeof(r->x->platform), h.platform, sizeof(h.platform));
	return 0;
}

/* The first section of a kind; *at is NULL where there is none. */
static int find_section(struct reader *r, uint32_t kind, const uint8_t **at,
			uint64_t *bytes)
{
	struct hal_xclbin_section s;
	struct hal_xclbin_head h;
	uint32_t i;

	*at = NULL;
	*bytes = 0;
	memcpy(&h, r->file, sizeof(h));
	for (i = 0; i < h.section_count; i++) {
		memcpy(&s, r->file + sizeof(h) + i * sizeof(s), sizeof(s));
		if (s.kind != kind)
			continue;
		if (s.offset > r->size || s.bytes > r->size - s.offset)
			return wrong(r,
				     "section %u (kind %u): %" PRIu64 " bytes at %" PRIu64
				     " exceed the file of %" PRIu64,
				     i, kind, s.bytes, s.offset, r->size);
		*at = r->file + s.offset;
		*bytes = s.bytes;
		return 0;
	}
	return 0;
}

/* A section that is a count and so many records behind head bytes. */
static int find_records(struct reader *r, uint32_t kind, const char *name, size_t head,
			size_t each, const uint8_t **at, uint32_t *count)
{
	uint64_t bytes;
	int32_t n = 0;
	int err = find_section(r, kind, at, &bytes);

	*count = 0;
	if (err)
		return err;
	if (!*at)
		return wrong(r, "section %s is missing", name);
	if (bytes >= head)
		memcpy(&n, *at, sizeof(n));
	if (bytes < head || n < 0 || (uint64_t)n > (bytes - head) / each)
		return wrong(r, "%s: %d records do not fit into %" PRIu64 " bytes", name,
			     n, bytes);
	*at += head;
	*count = (uint32_t)n;
	return 0;
}

/* ---- XML: elements and their attributes, of which only few are of interest ---------- */

struct element {
	char name[32];
	bool closes, empty;
	const char *at, *end; /* its attributes */
};

struct xml {
	const char *at, *end;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the quoted text that begins at p, or end. */
static const char *past_quotes(const char *p, const char *end)
{
	const char *q = memchr(p + 1, *p, (size_t)(end - p - 1));

	return q ? q + 1 : end;
}

/* The next element; false at the end. */
static bool next_element(struct xml *x, struct element *e)
{
	const char *p, *begin;

	for (;;) {
		p = memchr(x->at, '<', (size_t)(x->end - x->at));
		if (!p || ++p == x->end)
			return false;
		if (*p != '?' && *p != '!')
			break;
		x->at = p; /* a declaration or comment has no '<' of an element's */
	}
	e->closes = *p == '/';
	begin = p + e->closes;
	for (p = begin; p < x->end && !is_space(*p) && *p != '>' && *p != '/'; p++)
		;
	take_text(e->name, sizeof(e->name), begin, (size_t)(p - begin));
	e->at = p;
	while (p < x->end && *p != '>')
		p = *p == '"' || *p == '\'' ? past_quotes(p, x->end) : p + 1;
	e->end = p;
	e->empty = p > begin && p[-1] == '/';
	x->at = p;
	return p < x->end;
}

/* The value of an attribute; "" where there is none. */
static bool attribute(const struct element *e, const char *name, char *to, size_t room)
{
	const size_t length = strlen(name);
	const char *p = e->at, *q;

	to[0] = 0;
	while (p < e->end) {
		const char *begin;

		while (p < e->end && is_space(*p))
			p++;
		begin = p;
		while (p < e->end && *p != '=' && !is_space(*p))
			p++;
		q = p;
		while (p < e->end && *p != '"' && *p != '\'')
			p++;
		if (p == e->end)
			return false;
		if ((size_t)(q - begin) == length && memcmp(begin, name, length) == 0) {
			q = past_quotes(p, e->end);
			if ((size_t)(q - p) >= 2)
				take_text(to, room, p + 1, (size_t)(q - p - 2));
			return true;
		}
		p = past_quotes(p, e->end);
	}
	return false;
}

static bool number(const struct element *e, const char *name, uint64_t most, uint64_t *to)
{
	char text[32], *end;

	if (!attribute(e, name, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*to = strtoull(text, &end, 0);
	return !*end && !errno && *to <= most;
}

/* ---- kernels ------------------------------------------------------------------------ */

static int take_arg(struct reader *r, struct fp_kernel_desc *k, const struct element *e)
{
	uint64_t id = 0, qualifier = 0, size = 0, offset = 0;
	struct fp_arg *a;
	char type[32];

	if (!number(e, "id", FP_ARGS_MAX - 1, &id))
		return wrong(r, "kernel %s: an argument has no id below %u", k->name,
			     FP_ARGS_MAX);
	if (id != k->arg_count)
		return wrong(
			r, "kernel %s: argument %" PRIu64 " is out of order, %u expected",
			k->name, id, k->arg_count);
	if (!number(e, "addressQualifier", 4, &qualifier) || qualifier > 1)
		return wrong(r,
			     "kernel %s: argument %" PRIu64
			     " is neither memory nor a scalar",
			     k->name, id);
	if (!number(e, "size", 8, &size) || (qualifier && size != 8) ||
	    (size != 1 && size != 2 && size != 4 && size != 8))
		return wrong(r,
			     "kernel %s: argument %" PRIu64
			     " must have a size of 1, 2, 4 or 8",
			     k->name, id);
	if (!number(e, "offset", UINT16_MAX, &offset))
		return wrong(r, "kernel %s: argument %" PRIu64 " has no register offset",
			     k->name, id);
	a = &k->args[k->arg_count++];
	(void)attribute(e, "name", a->name, sizeof(a->name));
	(void)attribute(e, "type", type, sizeof(type));
	a->memory = qualifier == 1;
	a->is_float = strcmp(type, "float") == 0 && size == 4;
	a->is_double = strcmp(type, "double") == 0 && size == 8;
	a->scalar_bytes = a->memory ? 0 : (uint32_t)size;
	a->offset = (uint32_t)offset;
	return 0;
}

static int begin_kernel(struct reader *r, const struct element *e)
{
	struct fp_kernel_desc *k = &r->x->kernels[r->x->kernel_count];
	char name[64];
	uint32_t i;

	if (r->x->kernel_count == FP_KERNELS_MAX)
		return wrong(r, "more than %u kernels", FP_KERNELS_MAX);
	if (!attribute(e, "name", name, sizeof(name)) || !name[0])
		return wrong(r, "kernel %u has no name", r->x->kernel_count);
	if (strlen(name) >= sizeof(k->name))
		return wrong(r, "kernel %s: its name is longer than %zu characters", name,
			     sizeof(k->name) - 1);
	for (i = 0; i < r->x->kernel_count; i++)
		if (strcmp(r->x->kernels[i].name, name) == 0)
			return wrong(r, "kernel %s is defined twice", name);
	memcpy(k->name, name, strlen(name) + 1);
	r->x->kernel_count++;
	return 0;
}

/* Trailing arguments by these names are filled in, not given. */
static void find_group_args(struct fp_kernel_desc *k)
{
	static const char *const names[3] = {"hal_groups_x", "hal_groups_y",
					     "hal_groups_z"};
	uint32_t n;

	for (n = 3; n; n--) {
		uint32_t i = 0;

		while (i < n && n <= k->arg_count &&
		       strcmp(k->args[k->arg_count - n + i].name, names[i]) == 0 &&
		       k->args[k->arg_count - n + i].scalar_bytes == 4)
			i++;
		if (i == n)
			break;
	}
	k->group_args = n;
	k->arg_count -= n;
}

/* The last three by these names; none by them elsewhere. */
static int find_stop_args(struct reader *r, struct fp_kernel_desc *k)
{
	static const char *const names[3] = {"hal_state", "hal_resume", "hal_stop"};
	const uint32_t first = k->arg_count < 3 ? 0 : k->arg_count - 3;
	const struct fp_arg *a = &k->args[first];
	uint32_t i, n, found = 0;

	for (i = 0; i < k->arg_count; i++)
		for (n = 0; n < 3; n++)
			found += strcmp(k->args[i].name, names[n]) == 0;
	if (!found)
		return 0;
	k->stops = found == 3;
	for (n = 0; n < 3 && k->stops; n++)
		k->stops = strcmp(a[n].name, names[n]) == 0 &&
			   (n ? a[n].scalar_bytes == 4 && !a[n].is_float : a[n].memory);
	if (!k->stops || a[2].offset % 4)
		return wrong(r,
			     "kernel %s: hal_state, hal_resume and hal_stop must be its "
			     "last arguments: memory and two of 4 bytes, the last in a "
			     "register of its own",
			     k->name);
	k->arg_count -= 3;
	return 0;
}

static int read_kernels(struct reader *r)
{
	struct fp_kernel_desc *k = NULL;
	struct element e;
	struct xml xml;
	const uint8_t *at;
	uint64_t bytes;
	uint32_t i;
	int err = find_section(r, HAL_XCLBIN_EMBEDDED_METADATA, &at, &bytes);

	if (err)
		return err;
	if (!at)
		return wrong(r, "section EMBEDDED_METADATA, which describes the kernels, "
				"is missing");
	xml.at = (const char *)at;
	xml.end = xml.at + bytes;
	while (!err && next_element(&xml, &e)) {
		if (strcmp(e.name, "kernel") == 0 && !e.closes) {
			err = begin_kernel(r, &e);
			k = err || e.empty ? NULL
					   : &r->x->kernels[r->x->kernel_count - 1];
		} else if (strcmp(e.name, "kernel") == 0) {
			k = NULL;
		} else if (k && strcmp(e.name, "arg") == 0 && !e.closes) {
			err = take_arg(r, k, &e);
		}
	}
	if (err)
		return err;
	if (!r->x->kernel_count)
		return wrong(r, "EMBEDDED_METADATA describes no kernel");
	for (i = 0; i < r->x->kernel_count; i++) {
		err = find_stop_args(r, &r->x->kernels[i]);
		if (err)
			return err;
		find_group_args(&r->x->kernels[i]);
		if (r->x->kernels[i].arg_count > HAL_ARGS_MAX)
			return wrong(r, "kernel %s has %u arguments; the limit is %u",
				     r->x->kernels[i].name, r->x->kernels[i].arg_count,
				     HAL_ARGS_MAX);
	}
	return 0;
}

/* "KERNEL ARGUMENT BYTES" a line, with "#hal-bytes" before them: the least that an
 * argument's buffer has, which the vendor's sections do not say. */
static int read_lines(struct reader *r)
{
	static const char first[] = "#hal-bytes";
	unsigned int line = 1, arg;
	const uint8_t *at;
	uint64_t bytes, least;
	char name[32], text[96];
	uint32_t k;
	const char *p, *next, *end;
	int err = find_section(r, HAL_XCLBIN_USER_METADATA, &at, &bytes);

	if (err || !at || bytes < sizeof(first) - 1 ||
	    memcmp(at, first, sizeof(first) - 1) != 0)
		return err;
	end = (const char *)at + bytes;
	for (p = memchr(at, '\n', bytes); p && ++p < end; p = next) {
		next = memchr(p, '\n', (size_t)(end - p));
		take_text(text, sizeof(text), p, (size_t)((next ? next : end) - p));
		line++;
		if (!text[0])
			continue;
		/* NOLINTNEXTLINE(cert-err34-c): a number too large is as good as any */
		if (sscanf(text, "%31s %u %" SCNu64, name, &arg, &least) != 3)
			return wrong(
				r,
				"USER_METADATA, line %u: KERNEL ARGUMENT BYTES expected",
				line);
		for (k = 0; k < r->x->kernel_count; k++)
			if (strcmp(r->x->kernels[k].name, name) == 0)
				break;
		if (k == r->x->kernel_count || arg >= fp_all_args(&r->x->kernels[k]) ||
		    !r->x->kernels[k].args[arg].memory)
			return wrong(r,
				     "USER_METADATA, line %u: kernel %s has no buffer as "
				     "argument %u",
				     line, name, arg);
		r->x->kernels[k].args[arg].bytes = least;
	}
	return 0;
}

static int read_bytes(struct reader *r)
{
	int err = read_lines(r);
	uint64_t least;
	uint32_t i;

	for (i = 0; !err && i < r->x->kernel_count; i++) {
		const struct fp_kernel_desc *k = &r->x->kernels[i];

		least = k->stops ? k->args[fp_state_arg(k)].bytes : 1;
		if (!least || least > UINT64_C(1) << 40)
			err = wrong(r,
				    "USER_METADATA: hal_state of kernel %s has the "
				    "invalid size of %" PRIu64 " bytes",
				    k->name, least);
	}
	return err;
}

/* ---- banks, units, who reaches what -------------------------------------------------- */

static int read_banks(struct reader *r)
{
	struct hal_xclbin_bank b;
	const uint8_t *at;
	uint32_t i, count;
	int err = find_records(r, HAL_XCLBIN_MEM_TOPOLOGY, "MEM_TOPOLOGY", 8, sizeof(b),
			       &at, &count);

	if (err)
		return err;
	if (count > FP_BANKS_MAX)
		return wrong(r, "MEM_TOPOLOGY: %u banks; the limit is %u", count,
			     FP_BANKS_MAX);
	r->x->record_count = count;
	memcpy(r->x->records, at, count * sizeof(b));
	for (i = 0; i < count; i++) {
		struct fp_bank *bank = &r->x->banks[i];

		memcpy(&b, at + i * sizeof(b), sizeof(b));
		take_text(bank->tag, sizeof(bank->tag), b.tag, sizeof(b.tag));
		if (!b.used || (b.type > HAL_XCLBIN_DRAM && b.type != HAL_XCLBIN_HBM &&
				b.type != HAL_XCLBIN_BRAM && b.type != HAL_XCLBIN_URAM))
			continue;
		if (b.kbytes > UINT64_C(1) << 40)
			return wrong(r,
				     "MEM_TOPOLOGY: bank %u (%s) has the invalid size of "
				     "%" PRIu64 " KiB",
				     i, bank->tag, b.kbytes);
		bank->bytes = b.kbytes * 1024;
		bank->base = b.base;
		r->x->bank_count = i + 1;
	}
	return r->x->bank_count ? 0 : wrong(r, "MEM_TOPOLOGY: no bank is used");
}

static int32_t kernel_of(const struct reader *r, const char *name)
{
	const size_t n = strcspn(name, ":");
	uint32_t k;

	for (k = 0; k < r->x->kernel_count; k++)
		if (strlen(r->x->kernels[k].name) == n &&
		    memcmp(r->x->kernels[k].name, name, n) == 0)
			return (int32_t)k;
	return -1;
}

static int read_units(struct reader *r)
{
	struct fp_xclbin *x = r->x;
	struct hal_xclbin_ip ip;
	char name[sizeof(ip.name) + 1];
	const uint8_t *at;
	uint32_t i, count;
	int err = find_records(r, HAL_XCLBIN_IP_LAYOUT, "IP_LAYOUT", 8, sizeof(ip), &at,
			       &count);

	if (err)
		return err;
	if (count > sizeof(r->ip) / sizeof(r->ip[0]))
		return wrong(r, "IP_LAYOUT: %u units; the limit is %zu", count,
			     sizeof(r->ip) / sizeof(r->ip[0]));
	r->ips = at;
	r->ip_count = count;
	for (i = 0; i < count; i++) {
		memcpy(&ip, at + i * sizeof(ip), sizeof(ip));
		take_text(name, sizeof(name), ip.name, sizeof(ip.name));
		r->ip[i].kernel =
			ip.type == HAL_XCLBIN_IP_KERNEL ? kernel_of(r, name) : -1;
		if (ip.type != HAL_XCLBIN_IP_KERNEL)
			continue;
		if (r->ip[i].kernel < 0)
			return wrong(r, "IP_LAYOUT: unit %u (%s) belongs to no kernel", i,
				     name);
		r->ip[i].slot = x->kernels[r->ip[i].kernel].unit_count++;
		if (r->ip[i].slot >= FP_SLOTS_MAX)
			return wrong(r, "IP_LAYOUT: kernel %s has more than %u units",
				     x->kernels[r->ip[i].kernel].name, FP_SLOTS_MAX);
		if (r->ip[i].slot >= x->slot_count)
			x->slot_count = r->ip[i].slot + 1;
	}
	return x->slot_count ? 0 : wrong(r, "IP_LAYOUT: no kernel has a unit");
}

static int name_units(struct reader *r)
{
	struct hal_xclbin_ip ip;
	char name[sizeof(ip.name) + 1];
	uint64_t i;

	r->x->units = calloc((size_t)r->x->kernel_count * r->x->slot_count,
			     sizeof(*r->x->units));
	if (!r->x->units)
		return -ENOMEM;
	for (i = 0; i < r->ip_count; i++) {
		struct fp_unit_desc *u;
		const char *instance;

		if (r->ip[i].kernel < 0)
			continue;
		u = &r->x->units[(uint32_t)r->ip[i].kernel * r->x->slot_count +
				 r->ip[i].slot];
		memcpy(&ip, r->ips + i * sizeof(ip), sizeof(ip));
		take_text(name, sizeof(name), ip.name, sizeof(ip.name));
		instance = strchr(name, ':');
		if (!instance || !instance[1] || strlen(instance) > 29)
			return wrong(r, "IP_LAYOUT: unit %s is not named KERNEL:INSTANCE",
				     name);
		snprintf(u->name, sizeof(u->name), "%.31s:{%.28s}",
			 r->x->kernels[r->ip[i].kernel].name, instance + 1);
	}
	return 0;
}

static int read_connections(struct reader *r)
{
	struct hal_xclbin_connection c;
	const uint8_t *at;
	uint32_t i, count;
	int err = find_records(r, HAL_XCLBIN_CONNECTIVITY, "CONNECTIVITY", 4, sizeof(c),
			       &at, &count);

	for (i = 0; !err && i < count; i++) {
		const struct fp_kernel_desc *k;
		struct fp_unit_desc *u;

		memcpy(&c, at + i * sizeof(c), sizeof(c));
		if (c.ip < 0 || (uint64_t)c.ip >= r->ip_count || c.bank < 0 ||
		    c.bank >= (int32_t)FP_BANKS_MAX)
			return wrong(
				r, "CONNECTIVITY: record %u is invalid: unit %d, bank %d",
				i, c.ip, c.bank);
		if (r->ip[c.ip].kernel < 0)
			continue;
		k = &r->x->kernels[r->ip[c.ip].kernel];
		if (c.arg < 0 || (uint32_t)c.arg >= fp_all_args(k))
			return wrong(r,
				     "CONNECTIVITY: record %u: kernel %s has no argument "
				     "%d",
				     i, k->name, c.arg);
		u = &r->x->units[(uint32_t)r->ip[c.ip].kernel * r->x->slot_count +
				 r->ip[c.ip].slot];
		u->reach[c.arg] |= UINT64_C(1) << c.bank;
	}
	return err;
}

int fp_xclbin_read(const void *file, size_t size, struct fp_xclbin *x, char *why,
		   size_t why_bytes)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	memset(x, 0, sizeof(*x));
	snprintf(why, why_bytes, "no memory");
	if (r)
		x->kernels = calloc(FP_KERNELS_MAX, sizeof(*x->kernels));
	if (r && x->kernels) {
		r->file = file;
		r->size = size;
		r->x = x;
		r->why = why;
		r->why_bytes = why_bytes;
		err = check_head(r);
	}
	if (!err)
		err = read_kernels(r);
	if (!err)
		err = read_bytes(r);
	if (!err)
		err = read_banks(r);
	if (!err)
		err = read_units(r);
	if (!err)
		err = name_units(r);
	if (!err)
		err = read_connections(r);
	free(r);
	if (err)
		fp_xclbin_drop(x);
	return err;
}

void fp_xclbin_drop(struct fp_xclbin *x)
{
	free(x->kernels);
	free(x->units);
	x->kernels = NULL;
	x->units = NULL;
}
