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
	"exit status: 0, 1 when something is wrong or a replay differs, 2 when the "
	"command "
	"line\n"
	"is wrong.\n";

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
		return tool_usage("no command");
	cmd = find_command(words[0]);
	if (!cmd)
		return tool_usage("no such command: %s", words[0]);
	if (count > 1 + cmd->takes_target)
		return tool_usage("too many arguments: %s", words[1 + cmd->takes_target]);
	if (ctl->markdown && !cmd->takes_markdown)
		return tool_usage("--markdown belongs to backends, not to %s", cmd->name);
	if (ctl->markdown && ctl->json)
		return tool_usage("--markdown and --json exclude each other");
	ctl->target = count > 1 ? words[1] : NULL;
	if (cmd->run == halctl_replay && ctl->target == NULL)
		return tool_usage("replay: no file");
	if (cmd->run == halctl_replay && ctl->options[0] != NULL)
		return tool_usage("replay has no options: %s", ctl->options[0]);
	return cmd->run(ctl);
}

/* As the environment: hal_replay takes no options. */
static int read_config(const char *file)
{
	if (file[0] == '\0')
		return tool_usage("--config takes the name of a file");
	/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
	if (setenv("HAL_CONFIG", file, 1) < 0 || unsetenv("HAL_HAL_CONFIG") < 0)
		return tool_fail("out of memory");
	/* NOLINTEND(concurrency-mt-unsafe) */
	return 0;
}

static int halctl(int argc, char **argv)
{
	const char *options[OPTIONS_MAX + 1] = {NULL};
	struct halctl ctl = {.options = options};
	unsigned int count = 0;
	int c, rc = 0;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while (rc == 0 && (c = getopt_long(argc, argv, "jmc:o:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			ctl.json = 1;
			break;
		case 'm':
			ctl.markdown = 1;
			break;
		case 'c':
			rc = read_config(optarg);
			break;
		case 'o':
			if (count == OPTIONS_MAX)
				return tool_usage("more than 32 options: %s", optarg);
			options[count++] = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			return tool_version();
		default:
			return tool_usage_said();
		}
	}
	return rc != 0 ? rc : run(&ctl, argv + optind, argc - optind);
}

int main(int argc, char **argv)
{
	return tool_end(halctl(argc, argv));
}
