/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.c - the demo's tenants as programs of their own; see processes.h.
 *
 * hald serves them in lockstep, so that each run is the same.  The hostile one sends
 * programs whose bytes it has changed at random, runs those that are accepted, and sends
 * messages that mean nothing.  What it may use is its own partition.
 */
#define _GNU_SOURCE
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image.h"
#include "tool.h"

/* Device time that a program with wrong bytes gets. */
#define PATIENCE_NS 20000u
/* Bytes that are changed of each, and messages between two jobs. */
enum { CHANGES = 12, MESSAGES = 3 };

#define NAME "npu0"

/* ---- the hostile one --------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Send messages without meaning to hald. */
static void send_nonsense(const char *folder, struct process_told *told, uint32_t *seed)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/" NAME ".sock", folder);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		unsigned char bytes[512];

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)next_random(seed);
		if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 &&
		    send(fd, bytes, next_random(seed) % sizeof(bytes), MSG_NOSIGNAL) >= 0)
			told->messages++;
		(void)close(fd);
	}
}

/* Run a program that hald has accepted, for a while. */
static void run_wrong(const struct tenant *t, struct hal_program *program,
		      struct process_told *told)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_arg args[2] = {
		{.buffer = t->output, .bytes = t->work->out_room},
		{.buffer = t->input, .bytes = t->work->in_room},
	};
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct hal_point done;
	struct hal_cmd cmd;
	struct hal_device *dev = t->dev;

	if (hal_kernel_find(program, t->work->kernel, &kernel) ||
	    hal_queue_create(t->part, &qd, &queue))
		return;
	cmd = hal_cmd_launch(kernel, args, 2);
	d.cmds = &cmd;
	d.cmd_count = 1;
	if (hal_submit(queue, &d, &done) == 0 &&
	    hal_wait(&done, 1, HAL_WAIT_DEVICE_TIME,
		     (int64_t)(hal_device_get_time(dev) + PATIENCE_NS)) != 0)
		told->faults++;
	/* It may run for ever. */
	(void)hal_queue_suspend(queue, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL);
	while (hal_queue_destroy(queue) == -EBUSY)
		(void)hal_device_poll(dev, PATIENCE_NS);
}

/* Give the image the checksum of its bytes: CRC-32, with its own four counted as 0. */
static void make_whole(unsigned char *image, size_t size)
{
	uint32_t crc = UINT32_MAX;

	memset(image + offsetof(struct npu_image_header, checksum), 0, sizeof(crc));
	for (size_t i = 0; i < size; i++) {
		crc ^= image[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	crc = ~crc;
	memcpy(image + offsetof(struct npu_image_header, checksum), &crc, sizeof(crc));
}

/* Load the tenant's program with bytes changed: not those of its header, whose errors
 * are found first. */
static void load_wrong(const struct tenant *t, struct process_told *told, uint32_t *seed)
{
	unsigned char *image = malloc(t->work->image_size);
	struct hal_program *program;

	if (!image)
		return;
	memcpy(image, t->work->image, t->work->image_size);
	for (uint32_t i = 0; i < CHANGES; i++)
		image[sizeof(struct npu_image_header) +
		      next_random(seed) %
			      (t->work->image_size - sizeof(struct npu_image_header))] =
			(unsigned char)next_random(seed);
	make_whole(image, t->work->image_size);
	told->programs++;
	if (hal_program_load(t->dev, image, t->work->image_size, &program)) {
		told->refused++;
	} else {
		run_wrong(t, program, told);
		(void)hal_program_unload(program);
	}
	free(image);
}

/* ---- a program ---------------------------------------------------------------------- */

/* What a running program knows. */
struct self {
	const struct process *process;
	char folder[96]; /* of its tenant's socket */
	uint32_t seed;
	uint64_t attacked; /* jobs that were done at the last attack */
};

/* After each job: tell, and do what its role says. */
static int between_jobs(void *user, const struct tenant *t, uint32_t count)
{
	struct self *s = user;
	struct process_told *told = s->process->told;
	const struct run *r = t->run;

	(void)count;
	for (uint64_t i = told->done; i < r->done && i < PROCESS_JOBS; i++) {
		told->begin[i] = r->begins[i];
		told->cycles[i] = r->cycles[i];
		told->end = r->begins[i] + r->cycles[i];
		told->done = i + 1;
	}
	told->mismatched_bits = t->mismatched_bits;
	if (s->process->role == PROCESS_IS_KILLED && 2 * r->done >= s->process->jobs)
		(void)raise(SIGKILL); /* as somebody else would, at a moment that it is
					 not prepared for */
	if (s->process->role == PROCESS_IS_HOSTILE && r->done > s->attacked) {
		s->attacked = r->done;
		send_nonsense(s->folder, told, &s->seed);
		load_wrong(t, told, &s->seed);
	}
	return 0;
}

static int be(struct self *s)
{
	struct process_told *told = s->process->told;
	struct tenant t = {.name = s->process->partition,
			   .work = s->process->work,
			   .jobs = s->process->jobs};
	char option[128];
	const char *options[] = {option, NULL};
	struct hal_device *dev;

	snprintf(option, sizeof(option), "hal.broker_dir=%s", s->folder);
	if (hal_open("hald:" NAME, options, &dev) || tenant_open(&t, dev) ||
	    tenants_run(&t, 1, between_jobs, s)) {
		snprintf(told->why, sizeof(told->why), "%s", hal_last_error());
		return TOOL_FAILED;
	}
	tenant_close(&t);
	tenant_free(&t);
	return hal_close(dev) ? TOOL_FAILED : 0;
}

/* ---- hald --------------------------------------------------------------------------- */

/* A hald in a folder of its own. */
struct hald {
	char folder[64];
	pid_t pid;
};

static void path_in(const struct hald *h, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", h->folder, name);
}

static int tenants_write(const struct hald *h, const struct process *p, uint32_t count)
{
	char path[128];
	FILE *f;

	path_in(h, "tenants.conf", path);
	f = fopen(path, "we");
	if (!f)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	for (uint32_t i = 0; i < count; i++)
		fprintf(f, "[tenant \"%s\"]\nsocket = yes\nplace = yes\n",
			p[i].partition);
	return fclose(f) ? tool_fail("%s: %s", path, hal_strerror(errno)) : 0;
}

/* Start hald; it has said that it serves once this returns 0. */
static int hald_start(struct hald *h, const char *program, const char *config,
		      uint32_t clients)
{
	char tenants[128], option[4200], lockstep[16], line[256];
	int out[2];
	ssize_t n;

	path_in(h, "tenants.conf", tenants);
	snprintf(option, sizeof(option), "hal.config=%s", config);
	snprintf(lockstep, sizeof(lockstep), "%u", clients);
	if (pipe2(out, O_CLOEXEC))
		return tool_fail("pipe: %s", hal_strerror(errno));
	h->pid = fork();
	if (h->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], STDOUT_FILENO);
		execl(program, program, "--dir", h->folder, "--name", NAME, "--tenants",
		      tenants, "--lockstep", lockstep, "--option", option, (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	n = h->pid < 0 ? -1 : read(out[0], line, sizeof(line));
	(void)close(out[0]);
	return n > 0 ? 0 : tool_fail("%s could not be started", program);
}

static int hald_stop(const struct hald *h)
{
	char path[128];
	int status = 0;

	if (h->pid > 0) {
		(void)kill(h->pid, SIGTERM);
		(void)waitpid(h->pid, &status, 0);
	}
	path_in(h, "tenants.conf", path);
	(void)unlink(path);
	(void)rmdir(h->folder);
	return status ? tool_fail("hald has ended with status %d", status) : 0;
}

/* ---- all of it ---------------------------------------------------------------------- */

static pid_t process_start(const struct hald *h, const struct process *p)
{
	struct self self = {.process = p, .seed = 1};
	pid_t pid;

	snprintf(self.folder, sizeof(self.folder), "%s/%s", h->folder, p->partition);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(be(&self) ? 1 : 0);
	}
	return pid;
}

static int process_end(const struct process *p, pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return tool_fail("%s: no process: %s", p->partition, hal_strerror(errno));
	if (p->role == PROCESS_IS_KILLED && WIFSIGNALED(status) &&
	    WTERMSIG(status) == SIGKILL)
		return 0;
	if (p->role == PROCESS_IS_KILLED)
		return tool_fail("%s was to be killed", p->partition);
	return status ? tool_fail("%s, as a process: status %d: %s", p->partition, status,
				  p->told->why)
		      : 0;
}

static int run_all(const struct hald *h, struct process *p, uint32_t count)
{
	pid_t pids[PROCESSES_MAX];
	int rc = 0;

	(void)fflush(stdout);
	for (uint32_t i = 0; i < count; i++)
		pids[i] = process_start(h, &p[i]);
	for (uint32_t i = 0; i < count; i++)
		rc = process_end(&p[i], pids[i]) ? TOOL_FAILED : rc;
	return rc;
}

int processes_run(const char *hald, const char *config, struct process *processes,
		  uint32_t count)
{
	struct hald h = {.folder = "/tmp/accelhal-demo.XXXXXX"};
	int rc = 0;

	if (count > PROCESSES_MAX)
		return tool_fail("too many processes");
	for (uint32_t i = 0; i < count; i++) {
		processes[i].told =
			mmap(NULL, sizeof(*processes[i].told), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (processes[i].told == MAP_FAILED) {
			processes[i].told = NULL;
			return tool_fail("no memory for a process");
		}
	}
	if (!mkdtemp(h.folder))
		return tool_fail("%s: %s", h.folder, hal_strerror(errno));
	if (tenants_write(&h, processes, count) || hald_start(&h, hald, config, count))
		rc = TOOL_FAILED;
	if (!rc)
		rc = run_all(&h, processes, count);
	return hald_stop(&h) ? TOOL_FAILED : rc;
}

void processes_free(struct process *processes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (processes[i].told)
			(void)munmap(processes[i].told, sizeof(*processes[i].told));
}
