/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - halctl policy: which policy a running program's device has and why it has
 * decided as it has; and another one. */
#include "halctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"

static void faults(const struct json *r)
{
	char reason[200];

	printf("faults        %.0f wrong, %.0f stalls, %.0f starved\n",
	       live_number(r, "invalid"), live_number(r, "stalls"),
	       live_number(r, "starved"));
	if (live_text(r, "reason", reason, sizeof(reason))[0] != '\0')
		printf("the last      %s\n", reason);
	if (live_number(r, "gave_up") != 0)
		printf("given up      serves queues in order of arrival from then on\n");
	printf("longest wait  %.3f us\n", live_number(r, "longest_wait_ns") / 1e3);
}

/* What has been learned of one thing. */
static void learned(const struct json *l)
{
	double program = live_number(l, "program"), beside = live_number(l, "beside");
	char of[64], kernel[40], takes[32], units[16] = "";

	live_text(l, "kernel", kernel, sizeof(kernel));
	if (beside != 0)
		snprintf(of, sizeof(of), "program %.0f beside %.0f", program, beside);
	else if (program != 0)
		snprintf(of, sizeof(of), "program %.0f, %s", program, kernel);
	else
		snprintf(of, sizeof(of), "queue %.0f%s", live_number(l, "queue"),
			 live_number(l, "work") != 0 ? ", 10^6 of work" : "");
	if (beside != 0) {
		snprintf(takes, sizeof(takes), "+%.1f %%",
			 live_number(l, "longer_permille") / 10);
	} else {
		snprintf(takes, sizeof(takes), "%.3f us", live_number(l, "ns") / 1e3);
		snprintf(units, sizeof(units), "%.0f", live_number(l, "units"));
	}
	printf("  %-42s %5s %16s %10.0f %5.3f\n", of, units, takes,
	       live_number(l, "commands"), live_number(l, "sure_permille") / 1e3);
}

static void all_learned(const struct json *r)
{
	const struct json *l = live_list(r, "learned");

	if (l == NULL)
		return;
	printf("learned       %-30s %5s %16s %10s %5s\n", "OF", "UNITS", "TAKES",
	       "COMMANDS", "SURE");
	for (; l != NULL; l = l->next)
		learned(l);
	if (live_number(r, "learned_cut") != 0)
		printf("  and more\n");
}

static void show_text(const struct json *r)
{
	char name[64], settings[1024], program[64], device[32];
	double shown = 0, all = live_number(r, "decisions_all");

	printf("program       %s, %.0f\n",
	       live_text(r, "program", program, sizeof(program)), live_number(r, "pid"));
	printf("device        %s, at %.6f s\n",
	       live_text(r, "device", device, sizeof(device)),
	       live_number(r, "now_ns") / 1e9);
	printf("policy        %s\n", live_text(r, "policy", name, sizeof(name)));
	printf("settings      %s\n",
	       live_text(r, "settings", settings, sizeof(settings)));
	faults(r);
	all_learned(r);
	for (const struct json *d = live_list(r, "decisions"); d != NULL; d = d->next)
		shown++;
	printf("decisions     the last %.0f of %.0f", shown, all);
	printf("; a queue alone in its partition is served without a decision\n");
	for (const struct json *d = live_list(r, "decisions"); d != NULL; d = d->next) {
		char text[512];

		printf("%14.6f s  p%.0f  %s\n", live_number(d, "at_ns") / 1e9,
		       live_number(d, "partition"),
		       live_text(d, "text", text, sizeof(text)));
	}
}

static int show(const struct halctl *ctl)
{
	static const char *const words[] = {"look", NULL};
	char why[JSON_WHY], *text = NULL;
	struct json *r;
	struct live l;

	if (ctl->word_count > 1)
		return tool_usage("policy show: too many arguments: %s", ctl->words[1]);
	if (live_find_one(ctl, &l) != 0)
		return TOOL_FAILED;
	r = live_ask(&l.device[0], words, &text, why);
	if (r == NULL)
		return tool_fail("%s", why);
	if (ctl->json)
		printf("%s\n", text);
	else
		show_text(r);
	free(text);
	json_free(r);
	return 0;
}

static int set(const struct halctl *ctl)
{
	const char *words[40] = {"set"};
	char why[JSON_WHY];
	struct json *r;
	struct live l;

	if (ctl->word_count < 2)
		return tool_usage("policy set: no policy given");
	for (int i = 1; i < ctl->word_count; i++) {
		if (i > 1 && strchr(ctl->words[i], '=') == NULL)
			return tool_usage("policy set: %s is not KEY=VALUE",
					  ctl->words[i]);
		words[i] = ctl->words[i];
	}
	if (live_find_one(ctl, &l) != 0)
		return TOOL_FAILED;
	r = live_ask(&l.device[0], words, NULL, why);
	if (r == NULL)
		return tool_fail("%s", why);
	json_free(r);
	return 0;
}

int halctl_policy(const struct halctl *ctl)
{
	if (ctl->word_count == 0)
		return tool_usage("policy: use show or set");
	if (strcmp(ctl->words[0], "show") == 0)
		return show(ctl);
	if (strcmp(ctl->words[0], "set") == 0)
		return set(ctl);
	return tool_usage("policy %s: use show or set", ctl->words[0]);
}
