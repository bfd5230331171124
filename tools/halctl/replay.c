/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - halctl replay: does an engine decide again what another has decided? */
#include "halctl.h"

#include <stdio.h>

#include <hal/ext/replay.h>

static int replay_json(const struct hal_replay_info *i)
{
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_u64(o, "turns", i->turns);
	out_u64(o, "inputs", i->inputs);
	out_u64(o, "decisions", i->decisions);
	out_u64(o, "mismatches", i->mismatches);
	if (i->mismatches != 0) {
		out_u64(o, "line", i->line);
		out_str(o, "mismatch", i->mismatch);
	}
	if (i->missing[0] != '\0')
		out_str(o, "missing", i->missing);
	out_record_end(o);
	return out_finish(o);
}

int halctl_replay(const struct halctl *ctl)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	int rc = 0;

	if (hal_replay(ctl->target, &i) < 0)
		return tool_fail_hal();
	if (ctl->json) {
		rc = replay_json(&i);
	} else {
		printf("turns       %llu\n", (unsigned long long)i.turns);
		printf("inputs      %llu\n", (unsigned long long)i.inputs);
		printf("decisions   %llu\n", (unsigned long long)i.decisions);
		printf("mismatches  %llu\n", (unsigned long long)i.mismatches);
		if (i.mismatches != 0)
			printf("first       %s\n", i.mismatch);
	}
	if (i.missing[0] != '\0')
		rc = tool_fail("%s", i.missing);
	return rc != 0 || i.mismatches != 0 ? TOOL_FAILED : 0;
}
