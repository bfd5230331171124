/* SPDX-License-Identifier: Apache-2.0 */
/* A server: two networks on one NPU answer requests that come over a socket, each by its
 * deadline (policy edf).  One thread, one epoll: the ring of completions is a file like
 * the clients are.  At the end: latencies and deadlines missed, in device time.
 * serve.py is the same in Python, serve_client.py asks either.
 *
 * Packets of a local socket.  Request: uint32_t id, uint32_t model, the input's bytes;
 * answer: uint32_t id, int32_t status (0 or -errno), the output's bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hal/hal.h>
#include <npuc.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)
#define SYS(call) ((call) < 0 ? (perror("serve: " #call), exit(1)) : (void)0)

enum { MODELS = 2, SLOTS = 8, HEAD = 2 * sizeof(uint32_t) };

/* A request in flight, with memory of its own. */
struct slot {
	bool busy;
	int client; /* -1: gone */
	uint32_t id;
	struct hal_buffer *in, *out;
};

struct model {
	const char *name;
	struct npuc_program file;
	struct npuc_port *in, *out;
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct slot slots[SLOTS];
	uint64_t refused;
};

static struct model models[MODELS];
static struct hal_completions *ring;
static int epoll_fd, listener, signals;
static uint64_t left; /* requests to be answered yet */
static char *packet;
static size_t packet_bytes = HEAD;

static void watch(int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	SYS(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (!*text || *end || *text == '-') {
		fprintf(stderr, "serve: %s: no number\n", text);
		exit(2);
	}
	return value;
}

static struct hal_buffer *buffer(struct hal_partition *part, uint64_t bytes)
{
	struct hal_buffer_desc desc = {.size = sizeof(desc), .bytes = bytes};
	struct hal_buffer *buf;

	TRY(hal_buffer_create(part, &desc, &buf));
	return buf;
}

/* On the device. */
static size_t bytes_of(const struct npuc_port *port)
{
	return port->count * npuc_type_bytes(port->device_type);
}

static void load(struct hal_device *dev, struct hal_partition *part, struct model *m,
		 const char *path, const char *deadline_ms)
{
	struct hal_queue_desc queue = {.size = sizeof(queue), .completions = ring};
	char why[NPUC_WHY];

	m->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (npuc_program_open(path, NULL, &m->file, why)) {
		fprintf(stderr, "serve: %s\n", why);
		exit(1);
	}
	if (m->file.input_count != 1 || m->file.output_count != 1) {
		fprintf(stderr, "serve: %s: not one input and one output\n", path);
		exit(1);
	}
	if (m->file.state) { /* whose? */
		fprintf(stderr, "serve: %s: keeps variables between requests\n", path);
		exit(1);
	}
	m->in = &m->file.inputs[0];
	m->out = &m->file.outputs[0];
	if (packet_bytes < HEAD + bytes_of(m->in))
		packet_bytes = HEAD + bytes_of(m->in);
	if (packet_bytes < HEAD + bytes_of(m->out))
		packet_bytes = HEAD + bytes_of(m->out);
	queue.deadline_ns = number(deadline_ms) * 1000000;
	TRY(hal_program_load(dev, m->file.image, m->file.image_size, &m->program));
	TRY(hal_kernel_find(m->program, "run", &m->kernel));
	TRY(hal_queue_create(part, &queue, &m->queue));
	for (int i = 0; i < SLOTS; i++) {
		m->slots[i].in = buffer(part, m->file.input_bytes);
		m->slots[i].out = buffer(part, m->file.output_bytes);
	}
}

static void answer(int client, uint32_t id, int32_t status, size_t bytes)
{
	memcpy(packet, &id, sizeof(id));
	memcpy(packet + sizeof(id), &status, sizeof(status));
	/* A client that does not read, or is gone, loses its answer. */
	if (client >= 0)
		(void)send(client, packet, HEAD + bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Into a free slot and on its way; else -errno. */
static int start(struct model *m, int client, uint32_t id)
{
	struct slot *s = m->slots;
	struct hal_submit_desc work = {.size = sizeof(work), .cmd_count = 1};
	int rc;

	while (s < m->slots + SLOTS && s->busy)
		s++;
	if (s == m->slots + SLOTS)
		return -EAGAIN;
	rc = hal_buffer_write(s->in, m->in->offset, packet + HEAD, bytes_of(m->in));
	if (rc < 0)
		return rc;

	struct hal_arg args[] = {{.buffer = s->out}, {.buffer = s->in}};
	struct hal_cmd run = hal_cmd_launch(m->kernel, args, 2);

	work.cmds = &run;
	work.tag = (uint64_t)((m - models) * SLOTS + (s - m->slots));
	rc = hal_submit(m->queue, &work, NULL);
	if (rc == 0)
		*s = (struct slot){true, client, id, s->in, s->out};
	return rc;
}

static void request(int client)
{
	ssize_t got = recv(client, packet, packet_bytes, MSG_DONTWAIT | MSG_TRUNC);
	uint32_t id, model;
	int status = -EINVAL;

	if (got < 0 && errno == EAGAIN)
		return;
	if (got < HEAD) { /* it has hung up, or sends what is no request */
		for (int i = 0; i < MODELS * SLOTS; i++)
			if (models[i / SLOTS].slots[i % SLOTS].client == client)
				models[i / SLOTS].slots[i % SLOTS].client = -1;
		close(client);
		return;
	}
	memcpy(&id, packet, sizeof(id));
	memcpy(&model, packet + sizeof(id), sizeof(model));
	if (model < MODELS && (size_t)got == HEAD + bytes_of(models[model].in))
		status = start(&models[model], client, id);
	if (status == -EAGAIN)
		models[model].refused++;
	if (status < 0)
		answer(client, id, status, 0);
}

/* What has ended; the epoll says that there is something. */
static void ended(void)
{
	struct hal_completion ends[MODELS * SLOTS];
	int count = hal_completions_read(ring, ends, MODELS * SLOTS, 0);

	TRY(count);
	for (int i = 0; i < count; i++) {
		struct model *m = &models[ends[i].tag / SLOTS];
		struct slot *s = &m->slots[ends[i].tag % SLOTS];

		TRY(hal_buffer_read(s->out, m->out->offset, packet + HEAD,
				    bytes_of(m->out)));
		answer(s->client, s->id, ends[i].status, bytes_of(m->out));
		s->busy = false;
		left -= left > 0;
	}
}

static void welcome(void)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (client >= 0)
		watch(client);
}

static void serve(void)
{
	struct epoll_event events[16];
	bool on = true;

	while (on && left) {
		int count = epoll_wait(epoll_fd, events, 16, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				welcome();
			else if (fd == hal_completions_get_fd(ring))
				ended();
			else if (fd == signals)
				on = false;
			else
				request(fd);
		}
	}
}

static void listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(at.sun_path)) {
		fprintf(stderr, "serve: %s: too long for a socket\n", path);
		exit(1);
	}
	memcpy(at.sun_path, path, strlen(path));
	SYS(epoll_fd = epoll_create1(EPOLL_CLOEXEC));
	SYS(listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0) {
		fprintf(stderr, "serve: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	SYS(listen(listener, 16));
	watch(listener);
	watch(signals);
	watch(hal_completions_get_fd(ring));
}

/* Before there are other threads, which take this over: the device has some. */
static void signals_by_fd(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	SYS(sigprocmask(SIG_BLOCK, &stop, NULL));
	SYS(signals = signalfd(-1, &stop, SFD_CLOEXEC));
}

/* What is in flight is waited for; nobody is answered any more. */
static void put_away(struct model *m)
{
	struct hal_point done;
	struct hal_submit_desc nothing = {.size = sizeof(nothing)};
	struct hal_completion ends[MODELS * SLOTS];

	while (hal_submit(m->queue, &nothing, &done) == -EAGAIN)
		TRY(hal_completions_read(ring, ends, MODELS * SLOTS, HAL_FOREVER));
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));
	TRY(hal_queue_destroy(m->queue));
	for (int i = 0; i < SLOTS; i++) {
		TRY(hal_buffer_destroy(m->slots[i].in));
		TRY(hal_buffer_destroy(m->slots[i].out));
	}
	TRY(hal_program_unload(m->program));
	npuc_program_free(&m->file);
}

static void report(struct model *m)
{
	struct hal_stats s = {.size = sizeof(s)};

	TRY(hal_queue_get_stats(m->queue, &s));
	printf("%-24s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %10.3f %10.3f\n", m->name,
	       s.requests, m->refused, s.deadline_misses, (double)s.request_p50_ns / 1e3,
	       (double)s.request_p99_ns / 1e3);
}

int main(int argc, char **argv)
{
	const char *const edf[] = {"policy.name=edf", NULL};
	struct hal_partition_desc units = {.size = sizeof(units)};
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_device *dev;
	struct hal_partition *part;

	if (argc != 6 && argc != 7) {
		fprintf(stderr, "usage: serve SOCKET MODEL MS MODEL MS [REQUESTS]\n"
				"MODEL: .npu or .tflite; MS: its deadline; ends after "
				"REQUESTS, or by SIGINT\n");
		return 2;
	}
	left = argc == 7 ? number(argv[6]) : UINT64_MAX;
	signals_by_fd();
	/* A virtual clock would stand still while this sleeps in epoll_wait. */
	TRY(hal_open("npu:0?clock=real", edf, &dev));
	TRY(hal_device_get_info(dev, &info));
	units.units_floor = info.unit_rows * info.unit_cols;
	TRY(hal_partition_create(dev, &units, &part));
	TRY(hal_completions_create(dev, MODELS * SLOTS, &ring));
	for (int i = 0; i < MODELS; i++)
		load(dev, part, &models[i], argv[2 + 2 * i], argv[3 + 2 * i]);
	packet = malloc(packet_bytes);
	if (!packet)
		return 1;
	listen_at(argv[1]);
	printf("listening at %s\n", argv[1]);
	(void)fflush(stdout);
	serve();
	printf("%-24s %8s %8s %8s %10s %10s\n", "model", "requests", "refused", "missed",
	       "p50 us", "p99 us");
	for (int i = 0; i < MODELS; i++)
		report(&models[i]);
	for (int i = 0; i < MODELS; i++)
		put_away(&models[i]);
	free(packet);
	unlink(argv[1]);
	TRY(hal_completions_destroy(ring));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	return 0;
}
