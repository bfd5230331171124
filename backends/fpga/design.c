/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations.  The card has one at a time; programs of others wait until it has been
 * put in its place, which takes long and is the mover's.  What is on it when its units
 * are open is ours: XRT lets nobody else load another, or have those units.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fp_unit *unit_of(const struct fp_design *d, uint32_t kernel, uint32_t slot)
{
	return &d->units[kernel * d->x.slot_count + slot];
}

/* Buffers stay where they are when a configuration comes: its banks have to be the same,
 * for XRT's driver byte for byte. */
static int fits(const struct fp_device *dev, const struct fp_xclbin *x)
{
	const struct fp_xclbin *base = &dev->base->x;
	uint32_t i;

	if (strcmp(x->platform, base->platform) != 0)
		return fp_host->fail(EINVAL,
				     "fpga:%u: the xclbin is for platform %s, but the "
				     "one on the card is for %s",
				     dev->index, x->platform, base->platform);
	for (i = 0; i < x->bank_count || i < base->bank_count; i++)
		if (x->banks[i].bytes != base->banks[i].bytes ||
		    x->banks[i].base != base->banks[i].base)
			return fp_host->fail(EINVAL,
					     "fpga:%u: bank %u is %s of %llu MiB in the "
					     "xclbin, but %s of %llu MiB on the card",
					     dev->index, i, x->banks[i].tag,
					     (unsigned long long)x->banks[i].bytes >> 20,
					     base->banks[i].tag,
					     (unsigned long long)base->banks[i].bytes >>
						     20);
	if (x->record_count != base->record_count)
		return fp_host->fail(EINVAL,
				     "fpga:%u: MEM_TOPOLOGY has %u banks in the xclbin, "
				     "but %u on the card",
				     dev->index, x->record_count, base->record_count);
	for (i = 0; i < x->record_count; i++)
		if (memcmp(&x->records[i], &base->records[i], sizeof(x->records[i])) != 0)
			return fp_host->fail(EINVAL,
					     "fpga:%u: bank %u, %s in the xclbin and %s "
					     "on the card, differs in type, tag or use",
					     dev->index, i, x->banks[i].tag,
					     base->banks[i].tag);
	return 0;
}

static bool is_same(const struct fp_xclbin *a, const struct fp_xclbin *b)
{
	uint32_t i;

	if (a->kernel_count != b->kernel_count || a->slot_count != b->slot_count)
		return false;
	for (i = 0; i < a->kernel_count; i++)
		if (strcmp(a->kernels[i].name, b->kernels[i].name) != 0 ||
		    a->kernels[i].arg_count != b->kernels[i].arg_count ||
		    a->kernels[i].group_args != b->kernels[i].group_args ||
		    a->kernels[i].stops != b->kernels[i].stops)
			return false;
	return memcmp(a->units, b->units,
		      (size_t)a->kernel_count * a->slot_count * sizeof(*a->units)) == 0;
}

static void destroy(struct fp_design *d)
{
	fp_xclbin_drop(&d->x);
	free(d->file);
	free(d->units);
	free(d->reach);
	free(d);
}

/* By bank, which slots' units reach it as this argument. */
static void turn_arg(const struct fp_xclbin *x, uint32_t kernel, uint32_t arg,
		     uint64_t *to)
{
	uint32_t bank, slot;

	for (bank = 0; bank < FP_BANKS_MAX; bank++)
		for (slot = 0; slot < x->slot_count; slot++)
			to[bank] |=
				(fp_xclbin_unit(x, kernel, slot)->reach[arg] >> bank & 1)
				<< slot;
}

static void turn_round(struct fp_design *d)
{
	uint64_t *at = d->reach;
	uint32_t k, arg;

	for (k = 0; k < d->x.kernel_count; k++) {
		for (arg = 0; arg < HAL_ARGS_MAX; arg++, at += FP_BANKS_MAX)
			turn_arg(&d->x, k, arg, at);
		if (d->x.kernels[k].stops)
			turn_arg(&d->x, k, fp_state_arg(&d->x.kernels[k]), at);
		at += FP_BANKS_MAX;
	}
}

static int make(struct fp_design *d, const void *file, size_t size)
{
	const size_t lines = (size_t)d->x.kernel_count * FP_REACH_ROWS * FP_BANKS_MAX;

	d->file = malloc(size);
	d->units = calloc((size_t)d->x.kernel_count * d->x.slot_count, sizeof(*d->units));
	d->reach = calloc(lines, sizeof(*d->reach));
	if (!d->file || !d->units || !d->reach)
		return fp_host->fail(ENOMEM, "fpga: no memory for an xclbin of %zu bytes",
				     size);
	memcpy(d->file, file, size);
	turn_round(d);
	return 0;
}

int fp_design_take(struct fp_device *dev, const void *file, size_t size,
		   struct fp_design **out)
{
	struct fp_design *d = calloc(1, sizeof(*d)), *old;
	char why[160];
	int err;

	if (!d)
		return fp_host->fail(ENOMEM, "fpga: no memory for an xclbin");
	err = fp_xclbin_read(file, size, &d->x, why, sizeof(why));
	if (err) {
		free(d);
		return fp_host->fail(-err, "fpga:%u: xclbin: %s", dev->index, why);
	}
	for (old = dev->designs; old; old = old->next)
		if (memcmp(old->x.uuid, d->x.uuid, sizeof(d->x.uuid)) == 0)
			break;
	if (old && !is_same(&old->x, &d->x))
		err = fp_host->fail(EINVAL,
				    "fpga:%u: an xclbin with the same UUID but other "
				    "kernels is loaded already",
				    dev->index);
	else if (!old && dev->base)
		err = fits(dev, &d->x);
	if (!err && !old)
		err = make(d, file, size);
	if (err || old) {
		destroy(d);
	} else {
		d->number = ++dev->design_count;
		d->next = dev->designs;
		dev->designs = d;
	}
	if (err)
		return err;
	*out = old ? old : d;
	(*out)->users++;
	return 0;
}

void fp_design_give(struct fp_device *dev, struct fp_design *d)
{
	struct fp_design **at = &dev->designs;

	if (!d || --d->users)
		return;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	destroy(d);
}

/* ---- units -------------------------------------------------------------------------- */

void fp_slot_close(const struct fp_design *d, uint32_t slot)
{
	uint32_t k;

	for (k = 0; d && slot < d->x.slot_count && k < d->x.kernel_count; k++) {
		struct fp_unit *u = unit_of(d, k, slot);

		/* Tried again: what stays open keeps others out. */
		if (u->run && xrt.xrtRunClose(u->run))
			(void)xrt.xrtRunClose(u->run);
		if (u->kernel && xrt.xrtKernelClose(u->kernel))
			(void)xrt.xrtKernelClose(u->kernel);
		u->run = u->kernel = NULL;
	}
}

int fp_slot_open(struct fp_device *dev, const struct fp_design *d, uint32_t slot,
		 char *why, size_t bytes)
{
	char text[96];
	uint32_t k;
	int err;

	if (!d) {
		snprintf(why, bytes, "slot %u: no xclbin is on the card", slot);
		return -EIO;
	}
	for (k = 0; slot < d->x.slot_count && k < d->x.kernel_count; k++) {
		const char *name = fp_xclbin_unit(&d->x, k, slot)->name;
		struct fp_unit *u = unit_of(d, k, slot);
		const char *call = "xrtPLKernelOpenExclusive";

		if (!name[0])
			continue;
		u->kernel = XRT(xrtPLKernelOpenExclusive, dev->handle, d->x.uuid, name);
		if (u->kernel) {
			call = "xrtRunOpen";
			u->run = XRT(xrtRunOpen, u->kernel);
		}
		if (u->run)
			continue;
		err = fp_why(dev, call, text, sizeof(text));
		snprintf(why, bytes, "%s: slot %u, unit %s%s", text, slot, name,
			 err == -EBUSY ? ": used by another process" : "");
		fp_slot_close(d, slot);
		return err;
	}
	return 0;
}

static void close_all(const struct fp_design *d)
{
	uint32_t i;

	for (i = 0; i < FP_SLOTS_MAX; i++)
		fp_slot_close(d, i);
}

/* ---- what is on the card ------------------------------------------------------------- */

/* What is to be done, where XRT's answer does not tell. */
static const char *hint(const struct fp_device *dev, int error)
{
	if (error == EDEADLK)
		return ": a unit hangs; reset the card";
	if (error == EPERM && dev->load_keeps)
		return ": buffers exist, and the card does not retain memory";
	return "";
}

int fp_design_load(struct fp_device *dev, const struct fp_design *d, char *why,
		   size_t bytes)
{
	uint8_t uuid[sizeof(d->x.uuid)];
	size_t at;

	if (XRT(xrtDeviceLoadXclbin, dev->handle, d->file)) {
		const char *more = hint(dev, errno);
		const int err = fp_why(dev, "xrtDeviceLoadXclbin", why, bytes);

		at = strlen(why);
		snprintf(why + at, bytes - at, "%s", more);
		return err;
	}
	if (XRT(xrtDeviceGetXclbinUUID, dev->handle, uuid))
		return fp_why(dev, "xrtDeviceGetXclbinUUID", why, bytes);
	if (memcmp(uuid, d->x.uuid, sizeof(uuid)) == 0)
		return 0;
	snprintf(why, bytes, "xrtDeviceGetXclbinUUID: another xclbin is on the card");
	return -EIO;
}

void fp_design_is_there(struct fp_device *dev, struct fp_design *d)
{
	dev->loads++;
	dev->loading_ns += fp_now(dev) - dev->load_began_ns;
	if (d == dev->loaded)
		return;
	fp_design_give(dev, dev->loaded);
	dev->loaded = d;
	d->users++;
}

void fp_design_forget(struct fp_device *dev)
{
	fp_design_give(dev, dev->loaded);
	dev->loaded = NULL;
}

/* Where it did not come, what was there is tried again: XRT may have kept it.  If it has
 * not, nobody knows what is. */
int fp_design_exchange(struct fp_chore *c)
{
	struct fp_device *dev = c->device;
	const struct fp_design *now = dev->wanted;
	bool broken = false;
	uint64_t left;
	int err;

	close_all(dev->loaded);
	err = fp_design_load(dev, dev->wanted, c->text, sizeof(c->text));
	if (err)
		now = dev->loaded;
	for (left = dev->load_slots; left; left &= left - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(left);
		struct fp_chore *s = &dev->slots[i].chore;

		s->err = fp_slot_open(dev, now, i, s->text, sizeof(s->text));
		broken |= s->err != 0;
	}
	dev->load_forgets = err && broken;
	if (dev->load_forgets)
		close_all(now);
	return err;
}

/* Those that came or went meanwhile are opened or closed. */
static void settle(struct fp_device *dev, uint32_t slot, bool failed)
{
	struct fp_slot *s = &dev->slots[slot];
	const bool was = dev->load_slots >> slot & 1;
	const bool open = was && dev->loaded && !s->chore.err;

	s->broken[0] = 0;
	if (was && s->chore.err)
		memcpy(s->broken, s->chore.text, sizeof(s->broken));
	if (!failed)
		s->hangs = 0;
	if (!s->owner && open)
		fp_slot_shut(dev, slot);
	else if (!s->owner && s->taken)
		fp_slot_give(dev, slot);
	else if (s->owner && open && s->hangs > 1)
		fp_slot_retire(dev, slot);
	else if (s->owner && !was && dev->loaded)
		fp_slot_anew(dev, slot);
}

void fp_design_exchanged(struct fp_device *dev)
{
	const bool failed = dev->loading.err != 0;
	uint32_t i;

	if (!failed)
		fp_design_is_there(dev, dev->wanted);
	if (dev->load_forgets)
		fp_design_forget(dev);
	for (i = 0; i < FP_SLOTS_MAX; i++)
		settle(dev, i, failed);
}
