/* SPDX-License-Identifier: Apache-2.0 */
/* halctl.c - what devices, capabilities and options this machine and configuration have.
 */
#define _GNU_SOURCE
#include "halctl.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/replay.h>

#define OPTIONS_MAX 32
#define RUNS_MAX    64u

static const char help[] =
	"usage: halctl COMMAND [OPTION...] [TARGET]\n"
	"\n"
	"  list               lists devices, and the backends without a device and why\n"
	"  info [TARGET]      shows what a device can do, and which of that is "
	"verified;\n"
	"                     TARGET as in hal_open: npu:0, 'npu:0?rows=8&cols=8', ref\n"
	"  options            lists every option, its value, and the value's source\n"
	"  backends           lists the backends of this build\n"
	"  top                shows live the partitions and queues of this user's "
	"programs that\n"
	"                     run with hal.monitor: owners of units, use, latencies\n"
	"  top TARGET         shows live the clients of a hald, as ps does\n"
	"  policy show        shows the policy of such a program, and the reasons for "
	"its last\n"
	"                     decisions\n"
	"  policy set NAME [KEY=VALUE...]\n"
	"                     sets the policy of such a program, with options of "
	"section\n"
	"                     [policy]; the program needs hal.monitor = control\n"
	"  check FILE         checks a configuration file, of hal.conf(5) or "
	"hald.conf(5)\n"
	"  replay FILE        repeats the decisions that an engine recorded "
	"(hal.journal), and\n"
	"                     compares the outcome\n"
	"  profile TARGET PROGRAM...\n"
	"                     measures kernels on a device, as JSON: run times by number "
	"of\n"
	"                     units, beside other kernels, and when stopped; PROGRAM: a "
	"table\n"
	"                     of networks (.json), a network of the built-in table, or a "
	"file\n"
	"                     for npuc\n"
	"\n"
	"  probe [TARGET]     finds the memory channel of each granule of a device by "
	"timing loads\n"
	"                     alone, for devices that do not report it: "
	"'npu:0?hash=opaque'\n"
	"\n"
	"  ps TARGET          lists the clients of a hald: what they have, and how much "
	"they "
	"use it\n"
	"  metrics TARGET     prints the counters of a hald and its tenants for "
	"Prometheus\n"
	"  cdi TARGET TENANT  prints a CDI specification that gives a container the "
	"socket "
	"of a\n"
	"                     tenant\n"
	"  trace TARGET       records what a hald serves, and writes the newest events "
	"to "
	"a file\n"
	"                     for Perfetto or Chrome; for others than administrators "
	"what "
	"their\n"
	"                     own tenant does\n"
	"  tenant list TARGET lists the tenants of a hald, and what they have\n"
	"  tenant add TARGET NAME [KEY=VALUE...]\n"
	"                     adds a tenant to a hald that runs, with keys of "
	"hald.conf(5), and\n"
	"                     prints the path of its socket\n"
	"  tenant remove TARGET NAME\n"
	"                     removes one, and ends its clients\n"
	"\n"
	"  -j, --json         JSON instead of text\n"
	"  -m, --markdown     backends: the table of docs/backends.md\n"
	"  -p, --program PID  top, policy: the program to show; PID.N if it has several "
	"devices\n"
	"  -n, --once         top: prints the current state once, as text\n"
	"  -d, --delay MS     top: time between updates (1000)\n"
	"  -r, --runs N       profile: number of runs of each kernel (3)\n"
	"  -t, --tolerance T  profile: fewer units are enough if they take at most T\n"
	"                     thousandths more time (50)\n"
	"  -t, --time S       trace: seconds to record (5); 0: until it is interrupted\n"
	"  -S, --size BYTES   trace: most bytes of the file, 64K to 1G (16M)\n"
	"  -w, --write FILE   probe: writes the map to FILE; trace: the file "
	"(hal-trace.json)\n"
	"  -P, --picture FILE probe: writes a picture of the map (PPM)\n"
	"  -k, --verify FILE  probe: measures how well the channels of this map keep "
	"tenants apart\n"
	"  -s, --seed N       probe: seed for the choice of granules (1)\n"
	"  -W, --wait S       probe: seconds to wait for a device that is in use (10)\n"
	"  -c, --config FILE  read FILE after other configuration files; /dev/null: no "
	"files\n"
	"  -o, --option SECTION.KEY=VALUE\n"
	"                     sets an option over file and environment; may be repeated\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when something is wrong or a replay differs, 2 when the "
	"command line\n"
	"is wrong.\n";

static const struct option longs[] = {
	{"json", no_argument, NULL, 'j'},
	{"markdown", no_argument, NULL, 'm'},
	{"program", required_argument, NULL, 'p'},
	{"once", no_argument, NULL, 'n'},
	{"delay", required_argument, NULL, 'd'},
	{"runs", required_argument, NULL, 'r'},
	{"tolerance", required_argument, NULL, 'L'},
	{"time", required_argument, NULL, 'T'},
	{"size", required_argument, NULL, 'S'},
	{"write", required_argument, NULL, 'w'},
	{"picture", required_argument, NULL, 'P'},
	{"verify", required_argument, NULL, 'k'},
	{"seed", required_argument, NULL, 's'},
	{"wait", required_argument, NULL, 'W'},
	{"config", required_argument, NULL, 'c'},
	{"option", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const struct command {
	const char *name;
	int (*run)(const struct halctl *ctl);
	int words; /* that may follow */
	int takes_markdown;
	int takes_program;
} commands[] = {
	{"list", halctl_list, 0, 0, 0},       {"info", halctl_info, 1, 0, 0},
	{"options", halctl_options, 0, 0, 0}, {"backends", halctl_backends, 0, 1, 0},
	{"top", halctl_top, 1, 0, 1},         {"policy", halctl_policy, 32, 0, 1},
	{"replay", halctl_replay, 1, 0, 0},   {"profile", halctl_profile, INT_MAX, 0, 0},
	{"probe", halctl_probe, 1, 0, 0},     {"tenant", halctl_tenant, 32, 0, 0},
	{"check", halctl_check, 1, 0, 0},     {"cdi", halctl_cdi, 2, 0, 0},
	{"ps", halctl_ps, 1, 0, 0},           {"metrics", halctl_metrics, 1, 0, 0},
	{"trace", halctl_trace, 1, 0, 0},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* name: NULL, or what is none. */
static int no_command(const char *name)
{
	char known[256] = "";

	for (size_t i = 0, used = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, " %s",
					 commands[i].name);
	if (name == NULL)
		return tool_usage("no command given; commands are%s", known);
	return tool_usage("no such command: %s; commands are%s", name, known);
}

static int check_probe(const struct halctl *ctl, const struct command *cmd)
{
	const char *map = ctl->map;

	if (cmd->run == halctl_trace)
		map = NULL;
	if (cmd->run != halctl_probe &&
	    (map != NULL || ctl->picture != NULL || ctl->verify != NULL ||
	     ctl->seed != 0 || ctl->wait_s != UINT32_MAX))
		return tool_usage("--write, --picture, --verify, --seed and --wait are "
				  "options of probe, not of %s",
				  cmd->name);
	if (ctl->verify != NULL && (ctl->map != NULL || ctl->picture != NULL))
		return tool_usage("--verify cannot be used with --write or --picture: it "
				  "tests a map instead of finding one");
	if (ctl->map != NULL && ctl->picture != NULL &&
	    strcmp(ctl->map, ctl->picture) == 0)
		return tool_usage("--write and --picture name the same file, %s",
				  ctl->map);
	return 0;
}

static int run(struct halctl *ctl, char **words, int count)
{
	const struct command *cmd;

	if (count == 0)
		return no_command(NULL);
	cmd = find_command(words[0]);
	if (!cmd)
		return no_command(words[0]);
	if (count - 1 > cmd->words)
		return tool_usage("too many arguments: %s", words[1 + cmd->words]);
	if (ctl->program != NULL && !cmd->takes_program)
		return tool_usage("--program is an option of top and policy, not of %s",
				  cmd->name);
	if ((ctl->once || ctl->delay_ms != 0) && cmd->run != halctl_top)
		return tool_usage("--once and --delay are options of top, not of %s",
				  cmd->name);
	if (ctl->markdown && !cmd->takes_markdown)
		return tool_usage("--markdown is an option of backends, not of %s",
				  cmd->name);
	if (ctl->markdown && ctl->json)
		return tool_usage("--markdown and --json cannot be used together");
	if (cmd->run != halctl_profile &&
	    (ctl->runs != 0 || ctl->tolerance != UINT32_MAX))
		return tool_usage(
			"--runs and --tolerance are options of profile, not of %s",
			cmd->name);
	if (cmd->run != halctl_trace && (ctl->time_s != UINT32_MAX || ctl->size != 0))
		return tool_usage("--time and --size are options of trace, not of %s",
				  cmd->name);
	if (check_probe(ctl, cmd) != 0)
		return TOOL_USAGE;
	ctl->target = count > 1 ? words[1] : NULL;
	ctl->words = words + 1;
	ctl->word_count = count - 1;
	if (cmd->run == halctl_replay && ctl->target == NULL)
		return tool_usage("replay: no file given");
	if (cmd->run == halctl_replay && ctl->options[0] != NULL)
		return tool_usage("replay takes no library options: %s", ctl->options[0]);
	if (cmd->run == halctl_profile && count < 3)
		return tool_usage("profile: no %s given",
				  count < 2 ? "target" : "program");
	if (ctl->runs == 0)
		ctl->runs = 3;
	if (ctl->seed == 0)
		ctl->seed = 1;
	if (ctl->wait_s == UINT32_MAX)
		ctl->wait_s = 10;
	if (ctl->tolerance == UINT32_MAX)
		ctl->tolerance = 50;
	if (ctl->time_s == UINT32_MAX)
		ctl->time_s = 5;
	if (ctl->size == 0)
		ctl->size = UINT64_C(16) << 20;
	return cmd->run(ctl);
}

static int read_number(const char *name, const char *text, uint32_t least, uint32_t most,
		       uint32_t *out)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || text[0] == '-' || n < least ||
	    n > most)
		return tool_usage("--%s %s: it must be a number from %u to %u", name,
				  text, least, most);
	*out = (uint32_t)n;
	return 0;
}

static int read_time(const char *text, struct halctl *ctl)
{
	return read_number("time", text, 0, 604800, &ctl->time_s);
}

static int read_tolerance(const char *text, struct halctl *ctl)
{
	return read_number("tolerance", text, 0, 1000, &ctl->tolerance);
}

static int read_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMG";
	const uint64_t most = UINT64_C(1) << 30;
	unsigned long long n;
	const char *unit;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end != '\0' ? strchr(units, *end) : NULL;
	if (unit != NULL && n <= most)
		n <<= 10 * (unit - units + 1);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || end[unit != NULL] != '\0' ||
	    n < 65536 || n > most)
		return tool_usage("--size %s: it must be a number of bytes from 64K to "
				  "1G",
				  text);
	*out = n;
	return 0;
}

/* As the environment: hal_replay takes no options. */
static int read_config(const char *file)
{
	if (file[0] == '\0')
		return tool_usage("--config needs the name of a file");
	/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
	if (setenv("HAL_HAL_CONFIG", file, 1) < 0)
		return tool_fail("out of memory");
	/* NOLINTEND(concurrency-mt-unsafe) */
	return 0;
}

static int read_delay(const char *text, int *ms)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end != '\0' || n < 20 || n > 3600000)
		return tool_usage("--delay %s: it must be 20 to 3600000 milliseconds",
				  text);
	*ms = (int)n;
	return 0;
}

static int halctl(int argc, char **argv)
{
	const char *options[OPTIONS_MAX + 1] = {NULL};
	struct halctl ctl = {.options = options,
			     .tolerance = UINT32_MAX,
			     .wait_s = UINT32_MAX,
			     .time_s = UINT32_MAX};
	const char *t = NULL; /* of -t, whose meaning is the command's */
	unsigned int count = 0;
	int c, rc = 0;

	while (rc == 0) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
		c = getopt_long(argc, argv, "jmp:nd:r:t:w:P:k:s:W:S:c:o:hV", longs, NULL);
		if (c == -1)
			break;
		switch (c) {
		case 'j':
			ctl.json = 1;
			break;
		case 'm':
			ctl.markdown = 1;
			break;
		case 'p':
			ctl.program = optarg;
			break;
		case 'n':
			ctl.once = 1;
			break;
		case 'd':
			rc = read_delay(optarg, &ctl.delay_ms);
			break;
		case 'r':
			rc = read_number("runs", optarg, 1, RUNS_MAX, &ctl.runs);
			break;
		case 't':
			t = optarg;
			break;
		case 'L':
			rc = read_tolerance(optarg, &ctl);
			break;
		case 'w':
			ctl.map = optarg;
			break;
		case 'P':
			ctl.picture = optarg;
			break;
		case 'k':
			ctl.verify = optarg;
			break;
		case 's':
			rc = read_number("seed", optarg, 1, UINT32_MAX, &ctl.seed);
			break;
		case 'W':
			rc = read_number("wait", optarg, 0, 3600, &ctl.wait_s);
			break;
		case 'T':
			rc = read_time(optarg, &ctl);
			break;
		case 'S':
			rc = read_size(optarg, &ctl.size);
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
	if (rc == 0 && t != NULL)
		rc = optind < argc && strcmp(argv[optind], "trace") == 0
			     ? read_time(t, &ctl)
			     : read_tolerance(t, &ctl);
	return rc != 0 ? rc : run(&ctl, argv + optind, argc - optind);
}

int main(int argc, char **argv)
{
	return tool_end(halctl(argc, argv));
}
