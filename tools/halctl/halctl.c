/* SPDX-License-Identifier: Apache-2.0 */
/* halctl.c - what devices, capabilities and options this machine and configuration have.
 */
#define _GNU_SOURCE
#include "halctl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 32

static const char help[] =
	"usage: halctl COMMAND [OPTION...] [TARGET]\n"
	"\n"
	"  list               devices present, and backends without one and why\n"
	"  info [TARGET]      what a device can do, and what of that is verified; TARGET "
	"as\n"
	"                     in hal_open: npu:0, 'npu:0?rows=8&cols=8', ref\n"
	"  options            every option, its value, and where the value came from\n"
	"  backends           backends of this build\n"
	"  replay FILE        has an engine take in what another has written down "
	"(hal.journal),\n"
	"                     and compares what they decide\n"
	"\n"
	"  -j, --json         JSON instead of text\n"
	"  -m, --markdown     backends: the table of the README\n"
	"  -c, --config FILE  read FILE instead of $HAL_CONFIG or ./hal.conf\n"
	"  -o, --option SECTION.KEY=VALUE\n"
	"                     sets an option over file and environment; may be repeated\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when the library answers with an error or a replay differs, 2 "
	"when\n"
	"the command line is wrong.\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, 'j'},
	{"markdown", no_argument, NULL, 'm'},
	{"config", required_argument, NULL, 'c'},
	{"option", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const struct command {
	const char *name;
	int (*run)(const struct halctl *ctl);
	int takes_target;
	int takes_markdown;
} commands[] = {
	{"list", halctl_list, 0, 0},       {"info", halctl_info, 1, 0},
	{"options", halctl_options, 0, 0}, {"backends", halctl_backends, 0, 1},
	{"replay", halctl_replay, 1, 0},
};

static int usage(const char *what, const char *which)
{
	fprintf(stderr, "halctl: %s%s%s\n", what, which ? ": " : "", which ? which : "");
	fprintf(stderr, "try: halctl --help\n");
	return HALCTL_USAGE;
}

static int version(void)
{
	uint32_t v = hal_version();

	printf("halctl %u.%u.%u\n", v >> 16, v >> 8 & 0xff, v & 0xff);
	return 0;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int run(struct halctl *ctl, char **words, int count)
{
	const struct command *cmd;

	if (count == 0)
		return usage("no command", NULL);
	cmd = find_command(words[0]);
	if (!cmd)
		return usage("no such command", words[0]);
	if (count > 1 + cmd->takes_target)
		return usage("too many arguments", words[1 + cmd->takes_target]);
	if (ctl->markdown && !cmd->takes_markdown)
		return usage("--markdown belongs to backends, not to", cmd->name);
	if (ctl->markdown && ctl->json)
		return usage("--markdown and --json exclude each other", NULL);
	ctl->target = count > 1 ? words[1] : NULL;
	if (ctl->target == NULL && cmd->run == halctl_replay)
		return usage("replay: no file", NULL);
	return cmd->run(ctl);
}

int main(int argc, char **argv)
{
	const char *options[OPTIONS_MAX + 1] = {NULL};
	struct halctl ctl = {.options = options};
	unsigned int count = 0;
	int c;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while ((c = getopt_long(argc, argv, "jmc:o:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			ctl.json = 1;
			break;
		case 'm':
			ctl.markdown = 1;
			break;
		case 'c':
			/* Not hal.config: hal_device_probe takes no options.  One thread.
			 */
			/* NOLINTNEXTLINE(concurrency-mt-unsafe) */
			if (setenv("HAL_CONFIG", optarg, 1) < 0)
				return usage("out of memory", NULL);
			break;
		case 'o':
			if (count == OPTIONS_MAX)
				return usage("more than 32 options", optarg);
			options[count++] = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			return version();
		default:
			fprintf(stderr, "try: halctl --help\n");
			return HALCTL_USAGE;
		}
	}
	return run(&ctl, argv + optind, argc - optind);
}
