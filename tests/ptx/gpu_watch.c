/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpu_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 30u

void *gpu_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void leave(int rc)
{
	fflush(stdout);
	_exit(rc);
}

int gpu_watch(int (*run)(void *arg), void *arg)
{
	char why[PTX_WHY] = "";
	int status, rc;
	pid_t child;

	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* before anything is printed */
	fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)alarm(SECONDS);
		rc = gpu_open(why);
		if (rc)
			printf("%s\n", why);
		leave(rc == 0 ? run(arg) : rc == GPU_NONE ? GPU_NONE : 1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		exit(1);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("the GPU's process ended by signal %d\n", WTERMSIG(status));
	return 1;
}

void gpu_mark(const char *name)
{
	static uint64_t began;
	static const char *last;

	if (last)
		printf("%s: %.0f ms\n", last, (double)(gpu_now() - began) / 1e6);
	last = name;
	began = gpu_now();
	(void)alarm(SECONDS);
}

void gpu_end_if_lost(void)
{
	if (gpu.lost)
		leave(1);
}
