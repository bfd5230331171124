/* SPDX-License-Identifier: Apache-2.0 */
/* What each entry point does; errno says why one that fails did. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_NS         1000000u
#define LOAD_BYTES_A_US 400u /* of the file */
#define SYNC_NS         2000u
#define SYNC_BYTES_A_NS 8u
#define UNIT_NS         2000u /* a unit is opened or closed, a run made: ioctls */

static void *refuse(int error)
{
	errno = error;
	return NULL;
}

static int refuse_int(int error)
{
	errno = error;
	return -1;
}

/* ---- handles ------------------------------------------------------------------------- */

struct object *object_find(const void *handle)
{
	struct object *o;

	for (o = world.objects; o; o = o->next)
		if (o == handle)
			return o;
	return NULL;
}

static struct object *handle_of(void *handle, enum object_kind kind, const char *call)
{
	struct object *o = object_find(handle);

	if (!o || o->kind != kind || o->gone)
		misuse("%s: %s", call,
		       !o                ? "no handle of anything"
		       : o->kind != kind ? "a handle of something else"
					 : "a handle that is gone");
	if (!o || o->kind != kind || o->gone || o->card->lost) {
		errno = o && o->card->lost ? ENODEV : EINVAL;
		return NULL;
	}
	return o;
}

/* What gives back works on a card that is lost, too. */
static struct object *last_of(void *handle, enum object_kind kind, const char *call)
{
	struct object *o = object_find(handle);

	if (o && o->kind == kind && !o->gone)
		return o;
	return handle_of(handle, kind, call);
}

/* of: a device's or another's handle with which it is made; or only the card's. */
static void *make_handle(size_t bytes, enum object_kind kind, struct card *card,
			 struct object *of)
{
	struct object *o = calloc(1, bytes);

	if (!o)
		return refuse(ENOMEM);
	o->kind = kind;
	o->card = card;
	o->device = of && of->device ? of->device : of;
	o->next = world.objects;
	world.objects = o;
	return o;
}

/* ---- devices ------------------------------------------------------------------------- */

void *do_xrtDeviceOpen(unsigned int index)
{
	if (index >= CARDS || world.cards[index].lost)
		return refuse(ENODEV);
	return make_handle(sizeof(struct object), OBJECT_DEVICE, &world.cards[index],
			   NULL);
}

int do_xrtDeviceClose(void *device)
{
	struct object *o = last_of(device, OBJECT_DEVICE, "xrtDeviceClose"), *other;

	if (!o)
		return -1;
	for (other = world.objects; other; other = other->next)
		if (other != o && !other->gone && other->device == o)
			misuse("xrtDeviceClose: something of the device is still open");
	o->gone = true;
	return 0;
}

static bool same_banks(const struct fp_xclbin *a, const struct fp_xclbin *b)
{
	return a->record_count == b->record_count &&
	       memcmp(a->records, b->records, a->record_count * sizeof(a->records[0])) ==
		       0;
}

/* With memory that is retained, and is laid out the same, buffers live through a load. */
static bool keeps_buffers(const struct card *c, const struct fp_xclbin *x)
{
	const char *retain = getenv("HAL_STAND_IN_XRT_RETAIN");

	return (!retain || strcmp(retain, "0") != 0) && same_banks(x, &c->x);
}

/* What was loaded is there: no other process has loaded another since. */
static bool is_there(const struct card *c)
{
	uint8_t uuid[16];

	return c->loaded && !c->stolen &&
	       (!shared_uuid(c, uuid) || memcmp(uuid, c->x.uuid, sizeof(uuid)) == 0);
}

static int check_design(const struct card *c, const struct fp_xclbin *x)
{
	uint32_t i;

	if (strcmp(x->platform, c->platform) != 0 ||
	    x->kernel_count * x->slot_count > UNITS_MAX)
		return EINVAL;
	for (i = 0; i < x->kernel_count; i++)
		if (!kernel_find(x->kernels[i].name))
			return EINVAL;
	if (c->bad)
		return EDEADLK;
	for (i = 0; i < units_of(c); i++)
		if (c->units[i].owner || c->units[i].busy)
			return EBUSY;
	if (!shared_is_free(c) && !shared_has(c, x->uuid))
		return EBUSY;
	return c->loaded && c->bos && !keeps_buffers(c, x) ? EPERM : 0;
}

int do_xrtDeviceLoadXclbin(void *device, const void *xclbin)
{
	struct object *o = handle_of(device, OBJECT_DEVICE, "xrtDeviceLoadXclbin");
	const struct hal_xclbin_head *head = xclbin;
	struct fp_xclbin x;
	uint64_t begin;
	char why[160];
	int error;

	if (!o)
		return -1;
	if (memcmp(head->magic, HAL_XCLBIN_MAGIC, sizeof(head->magic)) != 0 ||
	    fp_xclbin_read(xclbin, head->bytes, &x, why, sizeof(why)))
		return refuse_int(EINVAL);
	if (is_there(o->card) && memcmp(x.uuid, o->card->x.uuid, sizeof(x.uuid)) == 0) {
		fp_xclbin_drop(&x);
		return 0;
	}
	error = check_design(o->card, &x);
	if (error) {
		fp_xclbin_drop(&x);
		return refuse_int(error);
	}
	begin = world.now_ns;
	card_empty(o->card);
	spend("xrtDeviceLoadXclbin", LOAD_NS + head->bytes * 1000 / LOAD_BYTES_A_US);
	o->card->x = x;
	o->card->loaded = true;
	o->card->stolen = o->card->steals;
	o->card->steals = false;
	shared_put(o->card);
	note("load", o->card, begin);
	return 0;
}

int do_xrtDeviceGetXclbinUUID(void *device, uint8_t *uuid)
{
	const struct object *o =
		handle_of(device, OBJECT_DEVICE, "xrtDeviceGetXclbinUUID");

	if (!o || !o->card->loaded)
		return o ? refuse_int(EINVAL) : -1;
	if (!shared_uuid(o->card, uuid))
		memcpy(uuid, o->card->x.uuid, sizeof(o->card->x.uuid));
	uuid[0] ^= o->card->stolen ? 0xff : 0;
	return 0;
}

/* ---- kernels ------------------------------------------------------------------------- */

void *do_xrtPLKernelOpenExclusive(void *device, const uint8_t *uuid, const char *name)
{
	struct object *o = handle_of(device, OBJECT_DEVICE, "xrtPLKernelOpenExclusive");
	struct kernel *k;
	struct card *c;
	uint32_t i;

	if (!o)
		return NULL;
	spend("xrtPLKernelOpenExclusive", UNIT_NS);
	c = o->card;
	if (c->lost)
		return refuse(ENODEV);
	if (!is_there(c) || memcmp(uuid, c->x.uuid, sizeof(c->x.uuid)) != 0)
		return refuse(EINVAL);
	for (i = 0; i < units_of(c); i++)
		if (strcmp(c->x.units[i].name, name) == 0)
			break;
	if (i == units_of(c))
		return refuse(ENOENT);
	/* XRT would let the same process have it twice. */
	if (c->units[i].owner)
		misuse("xrtPLKernelOpenExclusive: %s is open already", name);
	if (c->units[i].owner || !shared_take(c, i))
		return refuse(EBUSY);
	k = make_handle(sizeof(*k), OBJECT_KERNEL, c, o);
	if (!k)
		return NULL;
	k->index = i;
	c->units[i].owner = k;
	return k;
}

/* A unit that nobody has is reset, if it can be.  Where it cannot the driver says that
 * the card is to be. */
int do_xrtKernelClose(void *kernel)
{
	struct kernel *k =
		(struct kernel *)last_of(kernel, OBJECT_KERNEL, "xrtKernelClose");
	struct card *c;

	if (!k)
		return -1;
	spend("xrtKernelClose", UNIT_NS);
	c = k->object.card;
	if (c->units[k->index].owner == k) {
		c->bad |= c->units[k->index].busy && c->units[k->index].hangs;
		unit_stop(c, k->index);
		c->units[k->index].owner = NULL;
		shared_give(c, k->index);
	}
	k->object.gone = true;
	return 0;
}

/* The unit whose hal_stop this is; others have no register that is ours. */
static struct kernel *stop_of(void *kernel, uint32_t offset, const char *call)
{
	struct kernel *k = (struct kernel *)handle_of(kernel, OBJECT_KERNEL, call);
	const struct fp_kernel_desc *d;
	const struct card *c;

	if (!k)
		return NULL;
	c = k->object.card;
	d = &c->x.kernels[k->index / c->x.slot_count];
	if (c->units[k->index].owner != k)
		misuse("%s: of a unit that is closed", call);
	else if (!d->stops || d->args[fp_state_arg(d) + 2].offset != offset)
		misuse("%s: register 0x%x is not hal_stop of %s", call, offset, d->name);
	else
		return k;
	errno = EINVAL;
	return NULL;
}

int do_xrtKernelReadRegister(void *kernel, uint32_t offset, uint32_t *value)
{
	const struct kernel *k = stop_of(kernel, offset, "xrtKernelReadRegister");

	if (!k)
		return -1;
	*value = unit_answer(k->object.card, k->index);
	return 0;
}

int do_xrtKernelWriteRegister(void *kernel, uint32_t offset, uint32_t value)
{
	const struct kernel *k = stop_of(kernel, offset, "xrtKernelWriteRegister");

	if (!k)
		return -1;
	unit_ask(k->object.card, k->index, value);
	return 0;
}

/* ---- runs ---------------------------------------------------------------------------- */

void *do_xrtRunOpen(void *kernel)
{
	struct object *k = handle_of(kernel, OBJECT_KERNEL, "xrtRunOpen");
	struct run *r;

	if (!k)
		return NULL;
	spend("xrtRunOpen", UNIT_NS);
	r = make_handle(sizeof(*r), OBJECT_RUN, k->card, k);
	if (!r)
		return NULL;
	r->kernel = (struct kernel *)k;
	r->call.card = k->card;
	r->state = XRT_NEW;
	return r;
}

/* What has begun goes on, and nobody hears of it. */
int do_xrtRunClose(void *run)
{
	struct object *o = last_of(run, OBJECT_RUN, "xrtRunClose");
	struct unit *u;

	if (!o)
		return -1;
	u = &o->card->units[((struct run *)o)->kernel->index];
	if (u->run == (struct run *)o)
		u->run = NULL;
	o->gone = true;
	return 0;
}

static int set_buffer(struct run *r, uint32_t index, void *handle)
{
	struct object *o = handle_of(handle, OBJECT_BO, "xrtRunSetArg");

	if (!o || o->card != r->object.card)
		return refuse_int(EINVAL);
	r->bos[index] = (struct bo *)o;
	r->call.args[index] = r->bos[index]->address;
	return 0;
}

int do_xrtRunSetArg(void *run, int index, va_list ap)
{
	struct run *r = (struct run *)handle_of(run, OBJECT_RUN, "xrtRunSetArg");
	const struct fp_kernel_desc *k;
	const struct fp_arg *a;
	uint64_t value = 0;
	double number;
	float single;

	if (!r)
		return -1;
	k = &r->object.card->x.kernels[r->kernel->index / r->object.card->x.slot_count];
	if (index < 0 || (uint32_t)index >= fp_all_args(k))
		return refuse_int(EINVAL);
	if (r->state == XRT_RUNNING)
		misuse("xrtRunSetArg: argument %d of a run that runs", index);
	a = &k->args[index];
	if (a->memory) {
		if (set_buffer(r, (uint32_t)index, va_arg(ap, void *)))
			return -1;
		r->set |= 1u << index;
		return 0;
	}
	if (a->is_float || a->is_double) {
		number = va_arg(ap, double);
		single = (float)number;
		if (a->is_float)
			memcpy(&value, &single, sizeof(single));
		else
			memcpy(&value, &number, sizeof(number));
	} else {
		value = va_arg(ap, uint64_t);
	}
	if (a->scalar_bytes < 8)
		value &= (UINT64_C(1) << (8 * a->scalar_bytes)) - 1;
	r->call.args[index] = value;
	r->set |= 1u << index;
	return 0;
}

/* A unit reaches its banks and no other: XRT refuses it, and so must ours before. */
static bool reaches(const struct run *r, const struct fp_unit_desc *u)
{
	uint32_t i;

	for (i = 0; i < FP_ARGS_MAX; i++)
		if (r->bos[i] && !(u->reach[i] >> r->bos[i]->bank & 1))
			return false;
	return true;
}

int do_xrtRunStart(void *run)
{
	struct run *r = (struct run *)handle_of(run, OBJECT_RUN, "xrtRunStart");
	const struct fp_kernel_desc *k;
	struct card *c;
	uint32_t unit, i;

	if (!r)
		return -1;
	c = r->object.card;
	unit = r->kernel->index;
	k = &c->x.kernels[unit / c->x.slot_count];
	if (r->set != (1u << fp_all_args(k)) - 1)
		misuse("xrtRunStart: %s without all of its arguments", k->name);
	for (i = 0; i < FP_ARGS_MAX; i++)
		if (r->bos[i] && r->bos[i]->object.gone) {
			misuse("xrtRunStart: %s on a buffer that is gone", k->name);
			return refuse_int(EINVAL);
		}
	if (r->kernel->object.gone || c->units[unit].owner != r->kernel) {
		misuse("xrtRunStart: %s, whose unit is closed", k->name);
		return refuse_int(EINVAL);
	}
	if (!reaches(r, &c->x.units[unit])) {
		misuse("xrtRunStart: %s does not reach the bank of a buffer", k->name);
		return refuse_int(EINVAL);
	}
	if (c->units[unit].busy)
		return refuse_int(EBUSY);
	unit_begin(c, unit, r);
	return 0;
}

uint32_t do_xrtRunState(void *run)
{
	const struct run *r = (struct run *)handle_of(run, OBJECT_RUN, "xrtRunState");

	return r ? r->state : XRT_ABORT;
}

/* ---- buffers ------------------------------------------------------------------------- */

/* The lowest place of the bank that is free, or NEVER; at: whom it goes behind. */
static uint64_t find_place(struct card *c, uint32_t bank, uint64_t bytes, struct bo ***at)
{
	const uint64_t first = c->x.banks[bank].base;
	const uint64_t end = first + c->x.banks[bank].bytes;
	uint64_t above = end, place = NEVER;
	struct bo **i;

	/* From the highest down; the last that fits is the lowest. */
	for (i = &c->bos; *i && (*i)->address >= end; i = &(*i)->lower)
		;
	for (;; i = &(*i)->lower) {
		const uint64_t below = *i && (*i)->address >= first
					       ? (*i)->address + (*i)->bytes
					       : first;

		if (above - below >= bytes) {
			place = below;
			*at = i;
		}
		if (!*i || (*i)->address < first)
			return place;
		above = (*i)->address;
	}
}

/* A buffer that has no place and no bytes on the card. */
static struct bo *make_bo(struct object *device, size_t bytes, uint32_t bank)
{
	struct bo *b = make_handle(sizeof(*b), OBJECT_BO, device->card, device);

	if (!b)
		return NULL;
	b->host = calloc(1, bytes);
	if (!b->host)
		abort();
	b->file = b->given = -1;
	b->bank = bank;
	b->bytes = bytes;
	return b;
}

/* The same, at a place of the bank. */
static struct bo *place_bo(struct object *device, size_t bytes, uint32_t bank)
{
	struct bo **at = NULL, *b;
	const uint64_t address = find_place(device->card, bank, bytes, &at);

	if (address == NEVER)
		return refuse(ENOMEM);
	b = make_bo(device, bytes, bank);
	if (!b)
		return NULL;
	b->address = address;
	b->lower = *at;
	b->listed = true;
	*at = b;
	return b;
}

/* Another handle of the same memory on the card, or NULL. */
static struct bo *same_memory(const struct card *c, uint64_t inode, const struct bo *but)
{
	struct object *o;

	for (o = world.objects; o; o = o->next) {
		struct bo *b = (struct bo *)o;

		if (o->kind == OBJECT_BO && !o->gone && o->card == c && b != but &&
		    b->mapped && !b->parent && b->inode == inode)
			return b;
	}
	return NULL;
}

/* A dma-buf is a memory file here, whose name says of which card and bank it is. */
#define FILE_NAME "hal_stand_in_xrt.%u.%u"

static void *map_file(struct bo *b, int fd)
{
	void *p = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	b->mapped = p != MAP_FAILED;
	return b->mapped ? p : NULL;
}

static void *make_file(struct bo *b)
{
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), FILE_NAME, b->object.card->index, b->bank);
	b->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->file < 0 || ftruncate(b->file, (off_t)b->bytes) != 0 ||
	    fcntl(b->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
	    fstat(b->file, &st) != 0)
		return NULL;
	b->inode = st.st_ino;
	return map_file(b, b->file);
}

void bo_drop(struct bo *b)
{
	free(b->host);
	if (b->mapped)
		munmap(b->memory, b->bytes);
	else
		free(b->memory);
	if (b->file >= 0)
		close(b->file);
	if (b->given >= 0 && close(b->given) != 0)
		misuse("xrtBOFree: the descriptor of the buffer has been closed");
	b->host = b->memory = NULL;
}

void *do_xrtBOAlloc(void *device, size_t bytes, uint64_t flags, uint32_t bank)
{
	struct object *o = handle_of(device, OBJECT_DEVICE, "xrtBOAlloc");
	struct bo *b;

	if (!o)
		return NULL;
	if (!bytes || bytes % PAGE)
		misuse("xrtBOAlloc: %zu bytes are no whole pages", bytes);
	if (!o->card->loaded || (flags & ~(uint64_t)XRT_FLAGS_CACHEABLE) ||
	    bank >= o->card->x.bank_count || !o->card->x.banks[bank].bytes)
		return refuse(EINVAL);
	b = place_bo(o, bytes, bank);
	if (!b)
		return NULL;
	if (flags)
		b->memory = make_file(b);
	else
		b->memory = calloc(1, bytes);
	if (!b->memory)
		abort();
	/* What was there before is nobody's business, nor zero. */
	memset(b->memory, 0xa5, bytes < DIRTY_MOST ? bytes : DIRTY_MOST);
	return b;
}

void *do_xrtBOSubAlloc(void *parent, size_t bytes, size_t offset)
{
	struct bo *p = (struct bo *)handle_of(parent, OBJECT_BO, "xrtBOSubAlloc"), *b;

	if (!p)
		return NULL;
	if (!bytes || offset > p->bytes || bytes > p->bytes - offset) {
		misuse("xrtBOSubAlloc: %zu bytes at %zu of %" PRIu64, bytes, offset,
		       p->bytes);
		return refuse(EINVAL);
	}
	b = make_handle(sizeof(*b), OBJECT_BO, p->object.card, &p->object);
	if (!b)
		return NULL;
	b->parent = p;
	b->bank = p->bank;
	b->address = p->address + offset;
	b->bytes = bytes;
	b->host = p->host + offset;
	b->memory = p->memory + offset;
	p->parts++;
	return b;
}

int do_xrtBOFree(void *bo)
{
	struct bo *b = (struct bo *)last_of(bo, OBJECT_BO, "xrtBOFree"), *other, **at;

	if (!b)
		return -1;
	other = b->mapped ? same_memory(b->object.card, b->inode, b) : NULL;
	if (bo_busy(b) && !other)
		misuse("xrtBOFree: a run uses the buffer");
	if (b->parts)
		misuse("xrtBOFree: a part of the buffer is still there");
	b->object.gone = true;
	if (b->parent) {
		b->parent->parts--;
		return 0;
	}
	if (b->listed) {
		for (at = &b->object.card->bos; *at != b; at = &(*at)->lower)
			;
		*at = other ? other : b->lower;
		if (other) {
			other->lower = b->lower;
			other->listed = true;
		}
	}
	bo_drop(b);
	return 0;
}

/* The same one each time. */
int do_xrtBOExport(void *bo)
{
	struct bo *b = (struct bo *)handle_of(bo, OBJECT_BO, "xrtBOExport");

	if (!b)
		return -1;
	if (b->file < 0) {
		misuse("xrtBOExport: of host memory that no other process could map");
		return refuse_int(EINVAL);
	}
	if (b->given < 0)
		b->given = fcntl(b->file, F_DUPFD_CLOEXEC, 0);
	return b->given;
}

/* What an export is of. */
struct exported {
	uint32_t card, bank;
	size_t bytes;
	uint64_t inode;
};

/* False: it is no export. */
static bool look_at(int fd, struct exported *e)
{
	char path[64], name[128] = "";
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, name, sizeof(name) - 1) < 0 || fstat(fd, &st) != 0 ||
	    sscanf(name, "/memfd:" FILE_NAME, &e->card, &e->bank) != 2)
		return false;
	e->bytes = (size_t)st.st_size;
	e->inode = st.st_ino;
	return true;
}

/* On its own card it is where it is; one of another process has a place of its own here.
 * On another card it is host memory, at no address of the card. */
void *do_xrtBOImport(void *device, int fd)
{
	struct object *o = handle_of(device, OBJECT_DEVICE, "xrtBOImport");
	const struct bo *same;
	struct exported e;
	struct bo *b;

	if (!o)
		return NULL;
	/* XRT 2.13 says no reason. */
	if (!o->card->loaded || !look_at(fd, &e) ||
	    (e.card == o->card->index && e.bank >= o->card->x.bank_count))
		return refuse(0);
	same = same_memory(o->card, e.inode, NULL);
	b = e.card != o->card->index || same ? make_bo(o, e.bytes, e.bank)
					     : place_bo(o, e.bytes, e.bank);
	if (!b)
		return NULL;
	b->apart = e.card != o->card->index;
	b->address = b->apart ? NEVER : same ? same->address : b->address;
	b->inode = e.inode;
	b->memory = map_file(b, fd);
	if (!b->memory)
		abort();
	return b;
}

size_t do_xrtBOSize(void *bo)
{
	const struct bo *b = (struct bo *)handle_of(bo, OBJECT_BO, "xrtBOSize");

	return b ? b->bytes : SIZE_MAX;
}

uint64_t do_xrtBOAddress(void *bo)
{
	const struct bo *b = (struct bo *)handle_of(bo, OBJECT_BO, "xrtBOAddress");

	return b && !b->apart ? b->address : UINT64_MAX;
}

void *do_xrtBOMap(void *bo)
{
	const struct bo *b = (struct bo *)handle_of(bo, OBJECT_BO, "xrtBOMap");

	return b ? b->host : NULL;
}

static bool in_range(const struct bo *b, size_t bytes, size_t offset, const char *call)
{
	if (bytes && offset <= b->bytes && bytes <= b->bytes - offset)
		return true;
	misuse("%s: %zu bytes at %zu of %" PRIu64, call, bytes, offset, b->bytes);
	errno = EINVAL;
	return false;
}

int do_xrtBOSync(void *bo, uint32_t direction, size_t bytes, size_t offset)
{
	struct bo *b = (struct bo *)handle_of(bo, OBJECT_BO, "xrtBOSync");

	if (!b || !in_range(b, bytes, offset, "xrtBOSync"))
		return -1;
	if (direction > XRT_FROM_DEVICE)
		return refuse_int(EINVAL);
	spend("xrtBOSync", SYNC_NS + bytes / SYNC_BYTES_A_NS);
	if (b->object.gone || b->object.card->lost)
		return refuse_int(ENODEV);
	if (direction == XRT_TO_DEVICE)
		memcpy(b->memory + offset, b->host + offset, bytes);
	else
		memcpy(b->host + offset, b->memory + offset, bytes);
	return 0;
}

int do_xrtBOCopy(void *to, void *from, size_t bytes, size_t to_offset, size_t from_offset)
{
	struct bo *d = (struct bo *)handle_of(to, OBJECT_BO, "xrtBOCopy");
	struct bo *s = (struct bo *)handle_of(from, OBJECT_BO, "xrtBOCopy");

	if (!d || !s || !in_range(d, bytes, to_offset, "xrtBOCopy") ||
	    !in_range(s, bytes, from_offset, "xrtBOCopy"))
		return -1;
	spend("xrtBOCopy", SYNC_NS + bytes / SYNC_BYTES_A_NS);
	if (d->object.gone || s->object.gone || d->object.card->lost)
		return refuse_int(ENODEV);
	memmove(d->memory + to_offset, s->memory + from_offset, bytes);
	return 0;
}
