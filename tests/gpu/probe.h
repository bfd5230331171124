/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what a probe says in a process of its own, as a library that has started
 * stays. */
#ifndef TESTS_GPU_PROBE_H
#define TESTS_GPU_PROBE_H

#include "host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* It answers want, with this in its text, or NULL. */
static void probe_of(const struct hal_backend *(*backend)(const struct hal_host *h),
		     const struct hal_bk_config *cfg, int want, const char *text)
{
	enum { MOST = 4 };
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		const struct hal_backend *fresh = backend(&host);
		struct hal_device_info info[MOST];
		uint32_t i;
		int got;

		memset(info, 0, sizeof(info));
		for (i = 0; i < MOST; i++)
			info[i].size = sizeof(info[i]);
		got = fresh->cold.probe(cfg, info, MOST);
		if (got == want && (!text || strstr(host_text, text)))
			_exit(0);
		fprintf(stderr, "probe: %d, not %d: %s: not %s\n", got, want, host_text,
			text ? text : "");
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
