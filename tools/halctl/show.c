/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - the commands of halctl, as text and as JSON. */
#include "halctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hal/ext/options.h>
#include <hal/gpu.h>

static const char *size_text(uint64_t bytes, char *buf, size_t len)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned int u = 0;

	while (u < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, len, "%" PRIu64 " %s", bytes, unit[u]);
	return buf;
}

static const char *units_text(const struct hal_device_info *info, char *buf, size_t len)
{
	if (info->caps & HAL_CAP_GRID)
		snprintf(buf, len, "%u x %u", info->unit_rows, info->unit_cols);
	else
		snprintf(buf, len, "%u", info->unit_rows * info->unit_cols);
	return buf;
}

static const char *worst_text(const struct hal_device_info *info, char *buf, size_t len)
{
	if (info->preempt == HAL_PREEMPT_NONE)
		snprintf(buf, len, "%s", preempt_name(info->preempt));
	else if (info->preempt_worst_ns == 0)
		snprintf(buf, len, "%s, worst case not known yet",
			 preempt_name(info->preempt));
	else
		snprintf(buf, len, "%s, at most %" PRIu64 " ns",
			 preempt_name(info->preempt), info->preempt_worst_ns);
	return buf;
}

/* The words of a mask, ", " between them. */
static const char *mask_text(uint64_t mask, const char *(*name)(unsigned int bit),
			     char *buf, size_t len)
{
	size_t used = 0;

	snprintf(buf, len, "none");
	for (unsigned int bit = 0; name(bit) && used < len; bit++) {
		if (mask >> bit & 1)
			used += (size_t)snprintf(buf + used, len - used, "%s%s",
						 used ? ", " : "", name(bit));
	}
	return buf;
}

static void out_mask(struct out *o, const char *key, uint64_t mask,
		     const char *(*name)(unsigned int bit))
{
	out_list(o, key);
	for (unsigned int bit = 0; name(bit); bit++) {
		if (mask >> bit & 1)
			out_str(o, NULL, name(bit));
	}
	out_list_end(o);
}

/* gpu: what it says when it is open; NULL: nothing. */
static void out_device(struct out *o, const char *target,
		       const struct hal_device_info *info, const struct hal_gpu_info *gpu)
{
	out_record(o, NULL);
	out_str(o, "target", target);
	out_str(o, "backend", info->backend);
	out_str(o, "kind", kind_name(info->kind));
	out_str(o, "name", info->name);
	out_str(o, "bus_id", info->bus_id);
	out_u64(o, "memory_bytes", info->memory_bytes);
	out_u64(o, "memory_free", info->memory_free);
	out_u64(o, "unit_rows", info->unit_rows);
	out_u64(o, "unit_cols", info->unit_cols);
	out_u64(o, "partitions_max", info->partitions_max);
	out_u64(o, "guests_max", info->guests_max);
	out_u64(o, "colors", info->colors);
	out_u64(o, "granule_bytes", info->granule_bytes);
	out_str(o, "color_source", color_source_name(info->color_source));
	out_str(o, "preempt", preempt_name(info->preempt));
	out_u64(o, "preempt_worst_ns", info->preempt_worst_ns);
	out_str(o, "compute_isolation", isolation_name(info->compute_isolation));
	out_str(o, "memory_isolation", isolation_name(info->memory_isolation));
	out_mask(o, "suspend_modes", info->suspend_modes, suspend_mode_name);
	out_mask(o, "caps", info->caps, cap_name);
	out_mask(o, "verified", info->verified, cap_name);
	out_u64(o, "clock_hz", info->clock_hz);
	out_u64(o, "bandwidth", info->bandwidth);
	out_u64(o, "loads", info->loads);
	out_u64(o, "load_ns", info->load_ns);
	out_u64(o, "page_bytes", info->page_bytes);
	out_u64(o, "turn_cycles", info->turn_cycles);
	out_u64(o, "limit_bytes", info->limit_bytes);
	out_u64(o, "limit_window_ns", info->limit_window_ns);
	out_list(o, "suspend_worst_ns");
	for (size_t mode = 0; mode <= HAL_SUSPEND_KILL; mode++)
		out_u64(o, NULL, info->suspend_worst_ns[mode]);
	out_list_end(o);
	if (gpu) {
		out_str(o, "partitions_way", gpu->way);
		out_str(o, "partitions_why", gpu->why);
		out_str(o, "faults", gpu->faults);
	}
	out_record_end(o);
}

static void out_backend(struct out *o, const struct hal_backend_info *info)
{
	out_record(o, NULL);
	out_str(o, "name", info->name);
	out_str(o, "summary", info->summary);
	out_u64(o, "devices", info->device_count);
	out_str(o, "status", info->status ? hal_strerror(info->status) : "present");
	out_str(o, "reason", info->reason);
	out_record_end(o);
}

/* Device number index and its target, "backend:n": n counts the devices of one backend,
 * which come one after the other. */
struct walk {
	const struct hal_scan *scan;
	uint32_t index;
	uint32_t in_backend;
	struct hal_device_info info;
	char target[32];
};

/* 1, or 0 past the last, or TOOL_FAILED. */
static int one_of(int err)
{
	if (err == 0)
		return 1;
	if (err == -ERANGE)
		return 0;
	return tool_fail_hal();
}

static int walk_next(struct walk *w)
{
	char last[sizeof(w->info.backend)];
	int rc;

	memcpy(last, w->info.backend, sizeof(last));
	memset(&w->info, 0, sizeof(w->info));
	w->info.size = (uint32_t)sizeof(w->info);
	rc = one_of(hal_scan_get_device(w->scan, w->index, &w->info));
	if (rc <= 0)
		return rc;
	w->in_backend = strcmp(last, w->info.backend) == 0 ? w->in_backend + 1 : 0;
	w->index++;
	snprintf(w->target, sizeof(w->target), "%s:%u", w->info.backend, w->in_backend);
	return 1;
}

static int backend_at(const struct hal_scan *scan, uint32_t index,
		      struct hal_backend_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = (uint32_t)sizeof(*info);
	return one_of(hal_scan_get_backend(scan, index, info));
}

/* A device may be missing; whatever else keeps a backend from its devices is an error. */
static int backend_status(const struct hal_backend_info *info)
{
	return info->status == 0 || info->status == -ENODEV ? 0 : TOOL_FAILED;
}

static const char *backend_word(const struct hal_backend_info *info)
{
	return info->status == 0           ? ""
	       : backend_status(info) == 0 ? "absent: "
					   : "error: ";
}

static int out_backends(const struct hal_scan *scan, struct out *o)
{
	struct hal_backend_info backend;
	int rc, status = 0;

	for (uint32_t i = 0; (rc = backend_at(scan, i, &backend)) > 0; i++) {
		out_backend(o, &backend);
		status |= backend_status(&backend);
	}
	return rc < 0 ? TOOL_FAILED : status;
}

static int list_json(const struct hal_scan *scan)
{
	struct walk w = {.scan = scan};
	struct out *o = out_create();
	int rc, status = TOOL_FAILED;

	if (!o)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_list(o, "devices");
	while ((rc = walk_next(&w)) > 0)
		out_device(o, w.target, &w.info, NULL);
	out_list_end(o);
	out_list(o, "backends");
	if (rc == 0)
		status = out_backends(scan, o);
	out_list_end(o);
	out_record_end(o);
	return status | out_finish(o);
}

static int list_text(const struct hal_scan *scan)
{
	struct hal_backend_info backend;
	struct walk w = {.scan = scan};
	char units[32], memory[32];
	int rc, status = 0;

	for (rc = walk_next(&w); rc > 0; rc = walk_next(&w)) {
		if (w.index == 1)
			printf("%-10s %-5s %-10s %-10s %s\n", "TARGET", "KIND", "UNITS",
			       "MEMORY", "NAME");
		printf("%-10s %-5s %-10s %-10s %s\n", w.target, kind_name(w.info.kind),
		       units_text(&w.info, units, sizeof(units)),
		       size_text(w.info.memory_bytes, memory, sizeof(memory)),
		       w.info.name);
	}
	for (uint32_t i = 0; rc >= 0 && (rc = backend_at(scan, i, &backend)) > 0; i++) {
		status |= backend_status(&backend);
		if (backend.status < 0)
			printf("%-10s %s%s\n", backend.name, backend_word(&backend),
			       backend.reason);
	}
	return rc < 0 ? TOOL_FAILED : status;
}

int halctl_list(const struct halctl *ctl)
{
	struct hal_scan *scan;
	int status;

	if (hal_scan_create(ctl->options, HAL_SCAN_DEVICES, &scan) < 0)
		return tool_fail_hal();
	status = ctl->json ? list_json(scan) : list_text(scan);
	(void)hal_scan_destroy(scan);
	return status;
}

/* Who says where they lie, and how sure that is. */
static const char *source_text(const struct hal_device_info *info, char *buf, size_t size)
{
	if (info->color_source == HAL_COLOR_DEVICE)
		snprintf(buf, size, "as the device reports");
	else if (info->color_wrong_ppm == UINT32_MAX)
		snprintf(buf, size, "from a map that is not verified");
	else
		snprintf(buf, size, "from a map of which at most %.4f %% is wrong",
			 info->color_wrong_ppm / 1e4);
	return buf;
}

static void info_text(const struct hal_device_info *info, const struct hal_gpu_info *gpu)
{
	char buf[160], source[64];

	printf("%-18s %s\n", "name", info->name);
	printf("%-18s %s (%s)\n", "backend", info->backend, kind_name(info->kind));
	if (info->bus_id[0])
		printf("%-18s %s\n", "bus id", info->bus_id);
	if (info->caps & HAL_CAP_PRIVATE)
		printf("%-18s %s\n", "each open", "is a machine of its own");
	printf("%-18s %s\n", "units", units_text(info, buf, sizeof(buf)));
	printf("%-18s %u\n", "partitions", info->partitions_max);
	if (gpu)
		printf("%-18s %s\n%-18s %s\n", "partitions by", gpu->way, "because",
		       gpu->why);
	if (info->guests_max != 0)
		printf("%-18s %u\n", "guests", info->guests_max);
	printf("%-18s %s\n", "memory", size_text(info->memory_bytes, buf, sizeof(buf)));
	printf("%-18s %s\n", "memory free",
	       size_text(info->memory_free, buf, sizeof(buf)));
	if (info->colors)
		printf("%-18s %u, granule %s, %s\n", "memory channels", info->colors,
		       size_text(info->granule_bytes, buf, sizeof(buf)),
		       source_text(info, source, sizeof(source)));
	else
		printf("%-18s %s\n", "memory channels", "not known");
	if (info->turn_cycles)
		printf("%-18s a turn of %u cycles for each partition\n", "on a channel",
		       info->turn_cycles);
	printf("%-18s %s\n", "preemption", worst_text(info, buf, sizeof(buf)));
	printf("%-18s %s\n", "suspend modes",
	       mask_text(info->suspend_modes, suspend_mode_name, buf, sizeof(buf)));
	printf("%-18s %s\n", "compute isolation",
	       isolation_name(info->compute_isolation));
	printf("%-18s %s\n", "memory isolation", isolation_name(info->memory_isolation));
	printf("%-18s %s\n", "capabilities",
	       mask_text(info->caps, cap_name, buf, sizeof(buf)));
	printf("%-18s %s\n", "verified",
	       mask_text(info->verified, cap_name, buf, sizeof(buf)));
	printf("%-18s %" PRIu64 " Hz\n", "clock", info->clock_hz);
	if (info->loads)
		printf("%-18s one at a time, %u loaded, %" PRIu64 " ns to load one\n",
		       "configurations", info->loads, info->load_ns);
	if (gpu)
		printf("%-18s %s\n", "faults", gpu->faults);
}

/* gpu->way stays "" where the device has no such extension. */
static int gpu_info(struct hal_device *dev, struct hal_gpu_info *gpu)
{
	const struct hal_gpu_extension *ext = hal_device_get_extension(dev, "gpu");

	memset(gpu, 0, sizeof(*gpu));
	gpu->size = (uint32_t)sizeof(*gpu);
	return ext ? ext->info(hal_device_get_native(dev), gpu) : 0;
}

/* What a device says of itself once it is open: probing alone confirms nothing. */
static int open_info(const struct halctl *ctl, const char *target,
		     struct hal_device_info *info, struct hal_gpu_info *gpu)
{
	struct hal_device *dev;
	int rc = 0;

	memset(info, 0, sizeof(*info));
	info->size = (uint32_t)sizeof(*info);
	if (hal_open(target, ctl->options, &dev) < 0)
		return tool_fail_hal();
	if (hal_device_get_info(dev, info) < 0 || (gpu && gpu_info(dev, gpu) < 0))
		rc = tool_fail_hal();
	if (hal_close(dev) < 0)
		rc = tool_fail_hal();
	return rc;
}

int halctl_info(const struct halctl *ctl)
{
	struct hal_gpu_info gpu = {0}, *said;
	struct hal_device_info info;
	struct out *o;

	if (open_info(ctl, ctl->target, &info, &gpu))
		return TOOL_FAILED;
	said = gpu.way[0] ? &gpu : NULL;
	if (!ctl->json) {
		info_text(&info, said);
		return 0;
	}
	o = out_create();
	if (!o)
		return TOOL_FAILED;
	out_device(o, ctl->target ? ctl->target : "", &info, said);
	return out_finish(o);
}

static void out_option(struct out *o, const struct hal_option_info *info)
{
	out_record(o, NULL);
	out_str(o, "section", info->section);
	out_str(o, "key", info->key);
	out_str(o, "value", info->value);
	out_str(o, "source", info->source);
	out_str(o, "type", info->type);
	out_str(o, "range", info->range);
	out_str(o, "default", info->def);
	out_str(o, "help", info->help);
	out_record_end(o);
}

static void option_text(const struct hal_option_info *info, char *section, size_t len)
{
	if (strcmp(section, info->section) != 0) {
		printf("%s[%s]\n", section[0] ? "\n" : "", info->section);
		snprintf(section, len, "%s", info->section);
	}
	/* As hal.conf would have it: the output can be read back.  A file names no other
	 * one. */
	printf("# %s (%s%s%s; default %s)\n", info->help, info->type,
	       info->range[0] ? " " : "", info->range, info->def[0] ? info->def : "none");
	printf("%s%s = %s ; %s\n",
	       info->value[0] != '\0' && strcmp(info->key, "config") != 0 ? "" : "# ",
	       info->key, info->value, info->source);
}

static int options_list(const struct halctl *ctl, const struct hal_scan *scan)
{
	struct hal_option_info info;
	struct out *o = NULL;
	char section[sizeof(info.section)] = "";
	int rc;

	if (ctl->json) {
		o = out_create();
		if (!o)
			return TOOL_FAILED;
		out_list(o, NULL);
	}
	for (uint32_t i = 0;; i++) {
		memset(&info, 0, sizeof(info));
		info.size = (uint32_t)sizeof(info);
		rc = one_of(hal_scan_get_option(scan, i, &info));
		if (rc <= 0)
			break;
		if (o)
			out_option(o, &info);
		else
			option_text(&info, section, sizeof(section));
	}
	if (o) {
		out_list_end(o);
		rc |= out_finish(o);
	}
	return rc == 0 ? 0 : TOOL_FAILED;
}

int halctl_options(const struct halctl *ctl)
{
	struct hal_scan *scan;
	int status;

	if (hal_scan_create(ctl->options, HAL_SCAN_OPTIONS, &scan) < 0)
		return tool_fail_hal();
	status = options_list(ctl, scan);
	(void)hal_scan_destroy(scan);
	return status;
}

static int backend_row(const struct halctl *ctl, const struct hal_backend_info *backend)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	int status = backend_status(backend);
	char units[32], worst[64], modes[64], colors[32];
	const char *stand_in;

	if (status != 0)
		(void)tool_fail("%s", backend->reason);
	else if (backend->status == 0)
		status = open_info(ctl, backend->name, &info, NULL);
	if (backend->status != 0 || status != 0) {
		printf("| `%s` | %s | - | - | - | - | - | - |\n", backend->name,
		       backend->summary);
		return status;
	}
	snprintf(colors, sizeof(colors), info.colors ? "%u" : "-", info.colors);
	stand_in = info.caps & HAL_CAP_STAND_IN ? " (here a stand-in, no device)" : "";
	printf("| `%s` | %s%s | %s | %u | %s | %s | %s / %s | %s |\n", backend->name,
	       backend->summary, stand_in, units_text(&info, units, sizeof(units)),
	       info.partitions_max, worst_text(&info, worst, sizeof(worst)),
	       mask_text(info.suspend_modes, suspend_mode_name, modes, sizeof(modes)),
	       isolation_name(info.compute_isolation),
	       isolation_name(info.memory_isolation), colors);
	return 0;
}

static int backends_markdown(const struct halctl *ctl, const struct hal_scan *scan)
{
	struct hal_backend_info backend;
	int rc, status = 0;

	printf("| backend | what it is | units | partitions | preemption | suspend modes "
	       "| "
	       "isolation: compute / memory | memory channels |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; (rc = backend_at(scan, i, &backend)) > 0; i++)
		status |= backend_row(ctl, &backend);
	return rc < 0 ? TOOL_FAILED : status;
}

static int backends_json(const struct hal_scan *scan)
{
	struct out *o = out_create();
	int status;

	if (!o)
		return TOOL_FAILED;
	out_list(o, NULL);
	status = out_backends(scan, o);
	out_list_end(o);
	return status | out_finish(o);
}

static int backends_text(const struct hal_scan *scan)
{
	struct hal_backend_info backend;
	int rc, status = 0;

	for (uint32_t i = 0; (rc = backend_at(scan, i, &backend)) > 0; i++) {
		status |= backend_status(&backend);
		printf("%-10s %u device%s  %s%s%s%s\n", backend.name,
		       backend.device_count, backend.device_count == 1 ? " " : "s",
		       backend.summary, backend.status < 0 ? "; " : "",
		       backend_word(&backend), backend.reason);
	}
	return rc < 0 ? TOOL_FAILED : status;
}

int halctl_backends(const struct halctl *ctl)
{
	struct hal_scan *scan;
	int status;

	if (hal_scan_create(ctl->options, HAL_SCAN_DEVICES, &scan) < 0)
		return tool_fail_hal();
	status = ctl->markdown ? backends_markdown(ctl, scan)
		 : ctl->json   ? backends_json(scan)
			       : backends_text(scan);
	(void)hal_scan_destroy(scan);
	return status;
}
