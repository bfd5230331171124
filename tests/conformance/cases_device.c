/* SPDX-License-Identifier: Apache-2.0 */
/* Library and device: open, info, probe, options, extension. */
#define _GNU_SOURCE
#include "conformance.h"
#include "tests/scan.h"

#include <errno.h>
#include <string.h>

#include <hal/ext/options.h>

static int version(struct conf *c)
{
	EQ(hal_version(),
	   HAL_VERSION_MAJOR << 16 | HAL_VERSION_MINOR << 8 | HAL_VERSION_PATCH);
	CHECK(strlen(hal_strerror(-ENOSPC)) > 0);
	CHECK(strcmp(hal_strerror(-ENOSPC), hal_strerror(-EINVAL)) != 0);
	CHECK(hal_last_error());
	return 0;
}

static int open_close(struct conf *c)
{
	struct hal_device *dev;
	int i;

	OK(hal_close(c->dev));
	c->dev = NULL;
	for (i = 0; i < 3; i++) {
		OK(hal_open(c->target, NULL, &dev));
		OK(hal_close(dev));
	}
	OK(hal_close(NULL));
	return 0;
}

static int open_empty_options(struct conf *c)
{
	const char *const none[] = {NULL};
	struct hal_device *dev;

	OK(hal_close(c->dev));
	c->dev = NULL;
	OK(hal_open(c->target, none, &dev));
	OK(hal_close(dev));
	return 0;
}

static int info(struct conf *c)
{
	const struct hal_device_info *i = &c->info;

	CHECK(strcmp(i->backend, c->pack->backend) == 0);
	CHECK(i->name[0]);
	CHECK(i->kind <= HAL_KIND_NPU);
	CHECK(i->memory_bytes > 0);
	CHECK(i->memory_free <= i->memory_bytes);
	CHECK((i->verified & ~i->caps) == 0);
	CHECK(i->unit_rows >= 1 && i->unit_cols >= 1);
	CHECK((i->caps & HAL_CAP_GRID) || i->unit_rows == 1);
	CHECK(i->partitions_max >= 1);
	CHECK(i->preempt <= HAL_PREEMPT_INSIDE);
	CHECK(i->compute_isolation <= HAL_ISOLATION_ENFORCED);
	CHECK(i->memory_isolation <= HAL_ISOLATION_ENFORCED);
	CHECK(i->suspend_modes < 1u << (HAL_SUSPEND_KILL + 1));
	CHECK(!(i->caps & HAL_CAP_RESIZE_LIVE) || (i->caps & HAL_CAP_RESIZE_IDLE));
	CHECK(!(i->caps & HAL_CAP_COLORED_MEMORY) || (i->colors && i->granule_bytes));
	CHECK((i->page_bytes & (i->page_bytes - 1)) == 0);
	CHECK(!i->colors || !i->page_bytes || i->granule_bytes % i->page_bytes == 0);
	CHECK(i->preempt != HAL_PREEMPT_INSIDE ||
	      (i->suspend_modes & ~(1u << HAL_SUSPEND_DRAIN)));
	CHECK(i->clock_hz > 0);
	EQ((i->caps & HAL_CAP_LIMIT) != 0, i->limit_bytes != 0);
	EQ(i->limit_bytes != 0, i->limit_window_ns != 0);
	CHECK(!i->limit_bytes || i->bandwidth);
	/* What is made by opening it has no place that others could find it at. */
	CHECK(!(i->caps & HAL_CAP_PRIVATE) || !i->bus_id[0]);
	return 0;
}

static int info_short_struct(struct conf *c)
{
	union {
		struct hal_device_info info;
		unsigned char bytes[sizeof(struct hal_device_info)];
	} u;
	uint32_t cut = offsetof(struct hal_device_info, memory_bytes), i;

	memset(&u, 0xa5, sizeof(u));
	u.info.size = cut;
	OK(hal_device_get_info(c->dev, &u.info));
	CHECK(strcmp(u.info.backend, c->info.backend) == 0);
	for (i = cut; i < sizeof(u); i++)
		EQ(u.bytes[i], 0xa5);
	return 0;
}

static int probe(struct conf *c)
{
	struct hal_device_info d;
	uint32_t i, found = 0;
	int err;

	for (i = 0; i < 1000; i++) {
		d = (struct hal_device_info)HAL_INIT(hal_device_info);
		err = scan_device(i, NULL, &d);
		if (err)
			break;
		if (strcmp(d.backend, c->pack->backend) == 0)
			found++;
	}
	EQ(err, -ERANGE);
	CHECK(found > 0);
	return 0;
}

static int backend_info(struct conf *c)
{
	struct hal_backend_info b;
	uint32_t i;
	int err;

	for (i = 0; i < 100; i++) {
		b = (struct hal_backend_info)HAL_INIT(hal_backend_info);
		err = scan_backend(i, NULL, &b);
		if (err)
			break;
		CHECK(b.name[0] && b.summary[0]);
		/* An absent one says why; a present one has a device. */
		CHECK(b.status ? b.reason[0] != 0 : b.device_count > 0);
		if (strcmp(b.name, c->pack->backend) == 0)
			OK(b.status);
	}
	EQ(err, -ERANGE);
	return 0;
}

static int options(struct conf *c)
{
	char section[48] = "backend.";
	struct hal_option_info o;
	uint32_t i, found = 0;
	int err;

	strncat(section, c->pack->backend, 32);
	for (i = 0; i < 1000; i++) {
		o = (struct hal_option_info)HAL_INIT(hal_option_info);
		err = scan_option(i, NULL, &o);
		if (err)
			break;
		CHECK(o.section[0] && o.key[0] && o.type[0] && o.help[0] && o.source[0]);
		if (strcmp(o.section, section) == 0)
			found++;
	}
	EQ(err, -ERANGE);
	CHECK(found > 0);
	return 0;
}

static int two_at_once(struct conf *c)
{
	struct hal_device *other;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *mine, *theirs;
	int err;

	OK(hal_open(c->target, NULL, &other));
	STEP(conf_whole(c, &mine));
	/* All units of one device say nothing of the other's; or they are the same ones,
	 * which one handle has at a time, or which both share. */
	d.units_floor = 1;
	err = hal_partition_create(other, &d, &theirs);
	if (err == -EBUSY || (err == -ENOSPC && (c->info.caps & HAL_CAP_PRIVATE) == 0)) {
		STEP(conf_part_gone(c, mine));
		err = hal_partition_create(other, &d, &theirs);
	}
	if (!err)
		err = hal_partition_destroy(theirs);
	err |= hal_close(other);
	CHECK(!err);
	return 0;
}

static int now_grows(struct conf *c)
{
	uint64_t last = hal_device_get_time(c->dev), now;
	int i;

	for (i = 0; i < 100; i++) {
		CHECK(hal_device_poll(c->dev, 100) >= 0);
		now = hal_device_get_time(c->dev);
		CHECK(now >= last);
		last = now;
	}
	return 0;
}

static int close_busy(struct conf *c)
{
	struct hal_partition *part;

	STEP(conf_whole(c, &part));
	ERR(hal_close(c->dev), -EBUSY);
	CHECK(hal_device_get_time(c->dev) < UINT64_MAX);
	return 0;
}

static int extension_unknown(struct conf *c)
{
	CHECK(!hal_device_get_extension(c->dev, "no such extension"));
	CHECK(strstr(hal_last_error(), "no such extension"));
	return 0;
}

static int native(struct conf *c)
{
	CHECK(hal_device_get_native(c->dev));
	CHECK(hal_device_get_native(c->dev) == hal_device_get_native(c->dev));
	return 0;
}

static int stats_fresh(struct conf *c)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(hal_device_get_stats(c->dev, &s));
	EQ(s.submitted + s.completed + s.failed + s.dropped + s.suspends, 0);
	EQ(s.busy_ns, 0);
	CHECK(s.now_ns <= hal_device_get_time(c->dev));
	return 0;
}

static int poll_idle(struct conf *c)
{
	EQ(hal_device_poll(c->dev, 0), 0);
	EQ(hal_device_poll(c->dev, 10000), 0);
	return 0;
}

const struct conf_case conf_device_cases[] = {
	{"device.version", version},
	{"device.open_close", open_close},
	{"device.open_empty_options", open_empty_options},
	{"device.info", info},
	{"device.info_short_struct", info_short_struct},
	{"device.probe", probe},
	{"device.backend_info", backend_info},
	{"device.options", options},
	{"device.two_at_once", two_at_once},
	{"device.now_grows", now_grows},
	{"device.close_busy", close_busy},
	{"device.extension_unknown", extension_unknown},
	{"device.native", native},
	{"device.stats_fresh", stats_fresh},
	{"device.poll_idle", poll_idle},
	{NULL, NULL},
};
