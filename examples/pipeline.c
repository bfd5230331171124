/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline of two processes over the same memory: pipeline [target].
 *
 *   first process --fill a frame--> frame <--mark it-- second process
 *
 * The first one exports a buffer and a timeline as file descriptors and sends them over a
 * socket; the second one imports them. From then on points alone order their work: no
 * frame is copied, and no message is sent for one. With "hald:npu0", or another device
 * that hald serves, both are tenants of one device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hal/hal.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

/* A slot holds every other frame, so that one can be filled while the other is marked. */
enum { FRAMES = 100, SLOTS = 2, FRAME_BYTES = 8192, WORDS = FRAME_BYTES / 4 };

struct stage {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *frames;
	/* Frame n (from 1) is filled, and marked, at value n. */
	struct hal_timeline *filled, *marked;
};

/* ---- descriptors over a socket ------------------------------------------------------- */

static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec byte = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &byte,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(socket, &m, MSG_NOSIGNAL) != 1)
		exit(1);
	close(fd);
}

static int receive_fd(int socket)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec byte = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &byte,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(socket, &m, 0) != 1 || CMSG_FIRSTHDR(&m) == NULL)
		exit(1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void send_timeline(int socket, struct hal_timeline *t)
{
	int fd;

	TRY(hal_timeline_export(t, HAL_TIMELINE_WAIT, &fd));
	send_fd(socket, fd);
}

static struct hal_timeline *receive_timeline(int socket, struct hal_device *dev)
{
	struct hal_timeline *t;
	int fd = receive_fd(socket);

	TRY(hal_timeline_import(dev, fd, &t));
	close(fd);
	return t;
}

/* ---- both stages ---------------------------------------------------------------------- */

static void stage_open(struct stage *s, const char *target)
{
	struct hal_partition_desc units = {.size = sizeof(units), .units_floor = 4};
	struct hal_queue_desc queue = {.size = sizeof(queue)};

	TRY(hal_open(target, NULL, &s->dev));
	TRY(hal_partition_create(s->dev, &units, &s->part));
	TRY(hal_queue_create(s->part, &queue, &s->queue));
}

static void stage_close(struct stage *s)
{
	TRY(hal_queue_destroy(s->queue));
	TRY(hal_timeline_destroy(s->filled));
	TRY(hal_timeline_destroy(s->marked));
	TRY(hal_buffer_destroy(s->frames));
	TRY(hal_partition_destroy(s->part));
	TRY(hal_close(s->dev));
}

static uint64_t slot_of(uint64_t frame)
{
	return frame % SLOTS * FRAME_BYTES;
}

/* Submits one command, which waits for one point and signals another. */
static void submit(const struct stage *s, struct hal_cmd cmd, struct hal_point after,
		   struct hal_point then)
{
	struct hal_submit_desc work = {.size = sizeof(work),
				       .cmds = &cmd,
				       .cmd_count = 1,
				       .waits = &after,
				       .wait_count = after.value != 0,
				       .signals = &then,
				       .signal_count = 1};

	TRY(hal_submit(s->queue, &work, NULL));
}

/* ---- the first process ---------------------------------------------------------------- */

static unsigned int count_wrong(const struct stage *s, uint64_t frame)
{
	static uint32_t words[WORDS];
	unsigned int wrong = 0;

	TRY(hal_buffer_read(s->frames, slot_of(frame), words, FRAME_BYTES));
	for (unsigned int i = 0; i < WORDS; i++)
		wrong += words[i] != (i < WORDS / 2 ? (uint32_t)frame : ~(uint32_t)frame);
	return wrong;
}

static void first(const char *target, int socket)
{
	struct hal_buffer_desc bytes = {.size = sizeof(bytes),
					.bytes = SLOTS * FRAME_BYTES,
					.flags = HAL_BUFFER_EXPORTABLE};
	unsigned int wrong = 0;
	struct stage s;
	int fd;

	stage_open(&s, target);
	TRY(hal_buffer_create(s.part, &bytes, &s.frames));
	TRY(hal_timeline_create(s.dev, &s.filled));
	TRY(hal_buffer_export(s.frames, &fd));
	send_fd(socket, fd);
	send_timeline(socket, s.filled);
	s.marked = receive_timeline(socket, s.dev);
	for (uint64_t f = 1; f <= FRAMES + 1; f++) {
		struct hal_point marked = {s.marked, f - 1};

		/* The frame before that in this slot has been looked at. */
		if (f <= FRAMES)
			submit(&s,
			       hal_cmd_fill(s.frames, slot_of(f), FRAME_BYTES,
					    (uint32_t)f),
			       (struct hal_point){s.marked, f > SLOTS ? f - SLOTS : 0},
			       (struct hal_point){s.filled, f});
		if (f == 1)
			continue;
		TRY(hal_wait(&marked, 1, 0, HAL_FOREVER));
		wrong += count_wrong(&s, f - 1);
	}
	printf("%d frames, %u words wrong\n", FRAMES, wrong);
	stage_close(&s);
}

/* ---- the second process --------------------------------------------------------------- */

static void second(const char *target, int socket)
{
	struct hal_buffer_desc bytes = {.size = sizeof(bytes),
					.bytes = SLOTS * FRAME_BYTES};
	struct hal_point last;
	struct stage s;
	int fd;

	stage_open(&s, target);
	fd = receive_fd(socket);
	TRY(hal_buffer_import(s.part, fd, &bytes, &s.frames));
	close(fd);
	s.filled = receive_timeline(socket, s.dev);
	TRY(hal_timeline_create(s.dev, &s.marked));
	send_timeline(socket, s.marked);
	for (uint64_t f = 1; f <= FRAMES; f++) {
		submit(&s,
		       hal_cmd_fill(s.frames, slot_of(f) + FRAME_BYTES / 2,
				    FRAME_BYTES / 2, ~(uint32_t)f),
		       (struct hal_point){s.filled, f}, (struct hal_point){s.marked, f});
		last = (struct hal_point){s.marked, f};
		TRY(hal_wait(&last, 1, 0, HAL_FOREVER));
	}
	/* Points that were reached stay reached for the first process. */
	stage_close(&s);
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : NULL;
	int sockets[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0)
		return 1;
	/* Each process opens the device for itself, after the fork. */
	child = fork();
	if (child == 0) {
		second(target, sockets[1]);
		return 0;
	}
	first(target, sockets[0]);
	return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}
