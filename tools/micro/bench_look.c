/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_look - what an engine is asked for by who looks at its device (hal.monitor), in
 * instructions.
 *
 *   bench_look look [N]    a look at a device of N queues (10,000, of which 512 are
 * shown)
 *
 * This program counts nothing itself; run it by
 *
 *   tools/figures/count_instructions --toggle-collect=view_take bench_look look [N]
 *
 * view_take is all that the engine does for a look, but for reading a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

#include "bench.h"

#define LOOKS 10u

/* How many bytes are answered; -1. */
static ssize_t look(const struct sockaddr_un *at)
{
	static char answer[65536];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = 0, got;

	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 ||
	    send(fd, "look", 5, MSG_NOSIGNAL) != 5 || shutdown(fd, SHUT_WR) != 0)
		n = -1;
	while (n >= 0 && (got = recv(fd, answer, sizeof(answer), 0)) > 0)
		n += got;
	(void)close(fd);
	return n;
}

static int look_often(const char *dir, unsigned int n)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%d.0", dir, (int)getpid());
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	for (unsigned int i = 0; i < LOOKS; i++)
		if (look(&at) < 1000)
			return tool_fail("%s: no answer", at.sun_path);
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT("looks");
	printf("figure_is hal.monitor.look.%u.instructions %u looks\n", n, LOOKS);
	return 0;
}

static int run(const char *dir, unsigned int n)
{
	char option[96];
	const char *options[] = {"hal.monitor=read", option, NULL};
	struct bench b;
	int rc;

	snprintf(option, sizeof(option), "hal.monitor_dir=%s", dir);
	if (bench_open(&b, "ref?clock=virtual&memory=1G", options, 1) != 0 ||
	    bench_add_queues(&b, n, 1) != 0)
		return TOOL_FAILED;
	rc = look_often(dir, n);
	return bench_close(&b) != 0 ? TOOL_FAILED : rc;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 10000;
	char dir[] = "/tmp/bench_look_XXXXXX";
	int rc;

	if (argc < 2 || strcmp(argv[1], "look") != 0 || n == 0) {
		fprintf(stderr, "usage: bench_look look [N]\n");
		return 2;
	}
	if (mkdtemp(dir) == NULL)
		return tool_end(tool_fail("%s cannot be made", dir));
	bench_within(RUNNING_ON_VALGRIND ? 900 : 60);
	rc = run(dir, n);
	(void)rmdir(dir);
	return tool_end(rc);
}
