/* SPDX-License-Identifier: Apache-2.0 */
/* profile_print.c - a profile as JSON; docs/profiles.md says what is what. */
#include "profile.h"

#include <stdio.h>

#include "halctl.h"

static void out_identity(struct out *o, const struct hal_device_info *i)
{
	out_record(o, "device");
	out_str(o, "backend", i->backend);
	out_str(o, "name", i->name);
	out_u64(o, "unit_rows", i->unit_rows);
	out_u64(o, "unit_cols", i->unit_cols);
	out_u64(o, "colors", i->colors);
	out_u64(o, "clock_hz", i->clock_hz);
	out_u64(o, "bandwidth", i->bandwidth);
	out_str(o, "clock", (i->caps & HAL_CAP_VIRTUAL_CLOCK) != 0 ? "virtual" : "real");
	out_record_end(o);
}

/* Those of one number of units, or all. */
static void out_times(struct out *o, const struct profile *p, const struct kernel *k,
		      const char *key, bool counted)
{
	out_list(o, key);
	for (uint32_t s = 0; s < p->shape_count; s++) {
		const struct shape *shape = &p->shapes[s];

		if (counted && !shape->counted)
			continue;
		out_record(o, NULL);
		out_u64(o, "units", (uint64_t)shape->rows * shape->cols);
		out_u64(o, "rows", shape->rows);
		out_u64(o, "cols", shape->cols);
		out_u64(o, "ns", k->times[s].ns);
		out_u64(o, "spread_ns", k->times[s].spread_ns);
		out_record_end(o);
	}
	out_list_end(o);
}

static void out_stops(struct out *o, const struct kernel *k)
{
	out_list(o, "stops");
	for (uint32_t m = 0; m < STOP_MODES; m++) {
		const struct stop_cost *s = &k->stops[m];

		if (!s->possible)
			continue;
		out_record(o, NULL);
		out_str(o, "mode", suspend_mode_name(m));
		out_u64(o, "quiet_ns", s->quiet_ns);
		out_u64(o, "cost_ns", s->cost_ns);
		out_u64(o, "saved_bytes", s->saved_bytes);
		out_record_end(o);
	}
	out_list_end(o);
}

static void out_kernel(struct out *o, const struct profile *p, const struct kernel *k)
{
	const struct shape *least = &p->shapes[k->least];

	out_record(o, NULL);
	out_str(o, "name", k->info.name);
	out_u64(o, "work", k->info.work);
	out_list(o, "arg_bytes");
	for (uint32_t i = 0; i < k->info.arg_count; i++)
		out_u64(o, NULL, k->info.arg_bytes[i]);
	out_list_end(o);
	out_str(o, "class", k->class);
	out_u64(o, "bytes", k->times[p->full].bytes);
	out_record(o, "least");
	out_u64(o, "units", (uint64_t)least->rows * least->cols);
	out_u64(o, "rows", least->rows);
	out_u64(o, "cols", least->cols);
	out_record_end(o);
	out_times(o, p, k, "units", true);
	out_times(o, p, k, "shapes", false);
	if (p->halves) {
		out_record(o, "copies");
		out_u64(o, "alone_ns", k->half_ns);
		out_u64(o, "beside_ns", k->beside_ns);
		out_record_end(o);
	}
	out_stops(o, k);
	out_record_end(o);
}

static void out_pairs(struct out *o, const struct profile *p)
{
	out_list(o, "beside_permille");
	for (uint32_t i = 0; p->halves && i < p->count; i++) {
		out_list(o, NULL);
		for (uint32_t k = 0; k < p->count; k++)
			out_u64(o, NULL, p->beside[i * p->count + k]);
		out_list_end(o);
	}
	out_list_end(o);
}

static void out_name(struct out *o, const struct model *m)
{
	char name[256];

	snprintf(name, sizeof(name), "%.240s%s", m->name, m->whole ? " run" : "");
	out_str(o, "name", name);
}

int profile_print(const struct profile *p)
{
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_u64(o, "accelhal_profile", PROFILE_VERSION);
	out_identity(o, &p->bench.info);
	out_u64(o, "runs", p->bench.runs);
	out_u64(o, "tolerance_permille", p->tolerance);
	out_u64(o, "memory_permille", MEMORY_PERMILLE);
	out_list(o, "programs");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct program *g = &p->programs[i];

		out_record(o, NULL);
		out_name(o, g->model);
		out_list(o, "kernels");
		for (uint32_t k = 0; k < g->count; k++)
			out_kernel(o, p, &g->kernels[k]);
		out_list_end(o);
		out_record_end(o);
	}
	out_list_end(o);
	out_pairs(o, p);
	out_record_end(o);
	return out_finish(o);
}
