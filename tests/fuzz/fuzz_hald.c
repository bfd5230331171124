/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hald.c - any messages to hald and any records in its rings: it answers or ends the
 * client, the memory of others stays what it is, and nothing of the client is left.
 *
 * hald's own functions serve one end of a socketpair in this process; the input is what
 * the client at the other end does.  It is a list of steps, and each is
 *
 *   request   op, how many file descriptors and which, six numbers, payload
 *   ring      RING, which, words of the next slots, by how much the tail moves
 *
 * A number or word is a token: 0: 0; 1 and 8 bytes; 128 + i: the i-th handle that hald
 * has given; else its own value.  A payload is a list of pieces: 1 to 127 and as many
 * bytes, 128 + i: a handle; 0: its end. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hal/ref.h>

#include "../../daemon/hald.h"
#include "far/message.h"
#include "util/compiler.h"
#include "util/fd.h"

#define HANDLES 64u
#define RINGS   4u
#define VICTIM  0x5a
#define BYTES   256u

/* Steps that are no request. */
enum { RING = FAR_OPS, STEPS };

static struct server s;
static struct hal_partition *victim;
static struct hal_buffer *bytes;
static uint64_t messages, ended;

struct input {
	const uint8_t *at, *end;
};

/* The client. */
struct program {
	struct channel *channel; /* hald's end */
	int fd, bell;
	uint64_t handles[HANDLES];
	uint32_t count;
	struct far_ring *rings[RINGS];
	uint32_t slots[RINGS], ring_count;
	char room[FAR_INLINE];
};

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", hal_last_error());
		abort();
	}
}

/* ---- hald -------------------------------------------------------------------------- */

static int add(const struct hal_ref_call *call)
{
	uint8_t *dst = call->at(call, 0, 0, 64);

	if (dst == NULL)
		return -EIO;
	dst[0]++;
	return 0;
}

static void finish(void)
{
	bells_stop(&s);
	(void)close(s.epoll);
	tenants_free(s.tenants);
	must(hal_buffer_destroy(bytes));
	must(hal_partition_destroy(victim));
	must(hal_close(s.dev));
	printf("messages %llu ended %llu\n", U64(messages), U64(ended));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct hal_ref_kernel kernel = {.name = "add",
						     .fn = add,
						     .span_ns = 1,
						     .arg_count = 1,
						     .arg_bytes = {64}};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_program *prog;
	uint8_t data[BYTES];

	(void)argc;
	(void)argv;
	must(hal_open("ref?clock=virtual&units=16", NULL, &s.dev));
	must(hal_ref_load(s.dev, &kernel, 1, &prog));
	must(hal_program_unload(prog));
	pd.units_floor = 4;
	bd.bytes = BYTES;
	must(hal_partition_create(s.dev, &pd, &victim));
	must(hal_buffer_create(victim, &bd, &bytes));
	memset(data, VICTIM, sizeof(data));
	must(hal_buffer_write(bytes, 0, data, sizeof(data)));
	s.info = (struct hal_device_info)HAL_INIT(hal_device_info);
	must(hal_device_get_info(s.dev, &s.info));
	s.name = "ref0";
	s.tenants = tenant_unlimited("everyone");
	s.tenants->admin = true;
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	(void)pthread_mutex_init(&s.lock, NULL);
	(void)pthread_mutex_init(&s.bell_lock, NULL);
	must(bells_start(&s));
	return atexit(finish);
}

/* ---- the input --------------------------------------------------------------------- */

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint64_t take_number(struct input *in, const struct program *p)
{
	uint8_t token = take(in);
	uint64_t value = token;

	if (token == 1)
		for (uint32_t i = 0; i < 8; i++)
			value = value << 8 | take(in);
	if (token >= 128)
		return p->count != 0 ? p->handles[(token - 128u) % p->count] : 0;
	return value;
}

static uint64_t take_payload(struct input *in, struct program *p)
{
	uint64_t size = 0;
	uint8_t token;

	while ((token = take(in)) != 0 && size < FAR_INLINE - 256) {
		if (token >= 128 && p->count != 0) {
			memcpy(p->room + size, &p->handles[(token - 128u) % p->count], 8);
			size += 8;
		}
		for (uint8_t i = 0; token < 128 && i < token; i++)
			p->room[size++] = (char)take(in);
	}
	return size;
}

/* A file descriptor that a client might send. */
static int descriptor(uint8_t kind)
{
	int fds[2], fd;

	switch (kind % 4) {
	case 0:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		(void)!ftruncate(fd, 8192);
		return fd;
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		(void)!pipe2(fds, O_CLOEXEC);
		(void)close(fds[1]);
		return fds[0];
	default:
		return eventfd(0, EFD_CLOEXEC);
	}
}

/* ---- the client --------------------------------------------------------------------- */

static void know(struct program *p, uint64_t handle)
{
	uint32_t kind = FAR_KIND(handle);

	if (handle >> 32 == 0 || kind < KIND_PARTITION || kind > KIND_TIMELINE)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		if (p->handles[i] == handle)
			return;
	p->handles[p->count++ % HANDLES] = handle;
	if (p->count > HANDLES)
		p->count = HANDLES;
}

/* Learn what the answer m, with its payload in p->room, gives. */
static void learn(struct program *p, const struct far_message *m, const int fds[2])
{
	if (m->op == FAR_HELLO && m->result == 0 && fds[1] >= 0)
		p->bell = dup(fds[1]);
	if (m->op == FAR_QUEUE && m->result == 0 && fds[0] >= 0 &&
	    p->ring_count < RINGS) {
		void *ring = mmap(NULL, far_ring_bytes((uint32_t)m->a[3]),
				  PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);

		if (ring != MAP_FAILED) {
			p->slots[p->ring_count] = (uint32_t)m->a[3];
			p->rings[p->ring_count++] = ring;
		}
	}
	if (m->result < 0)
		return;
	know(p, m->a[0]);
	know(p, m->a[1]);
	for (uint64_t at = 0;
	     m->op == FAR_PROGRAM && at + sizeof(struct far_kernel_entry) <= m->bytes;
	     at += sizeof(struct far_kernel_entry)) {
		struct far_kernel_entry k;

		memcpy(&k, p->room + at, sizeof(k));
		know(p, k.handle);
	}
}

/* Make the request harmless where an input would only make this program wait. */
static void shorten(struct far_message *m)
{
	if (m->op == FAR_CALLBACK)
		m->op = FAR_DEVICE_TIME;
	if (m->op == FAR_WAIT)
		m->a[1] = m->a[1] % 2;
	if (m->op == FAR_COMPLETIONS_READ)
		m->a[2] = m->a[2] % 2;
	if (m->op == FAR_DEVICE_POLL)
		m->a[0] %= 1000000;
	if (m->op == FAR_HOST)
		m->a[1] %= 1u << 20;
}

/* Send the request that in says, have it served, and take the answer.  Return false once
 * the client has been ended. */
static bool request(struct program *p, uint32_t op, struct input *in)
{
	uint8_t kind = take(in);
	struct far_message m = {.op = op};
	int fds[2], count = kind % 3;
	bool goes_on;
	int err;

	for (int i = 0; i < FAR_NUMBERS; i++)
		m.a[i] = take_number(in, p);
	shorten(&m);
	m.bytes = take_payload(in, p);
	for (int i = 0; i < count; i++)
		fds[i] = descriptor((uint8_t)(kind / 3 + i));
	err = message_send(p->fd, &m, p->room, fds, count);
	for (int i = 0; i < count; i++)
		(void)close(fds[i]);
	if (err != 0)
		return false; /* because of what is in a ring */
	goes_on = channel_serve(p->channel);
	messages++;
	/* Host functions of this client are called by nobody. */
	for (struct client *c = s.clients; c != NULL; c = c->next)
		c->closing = true;
	if (recv(p->fd, &m, 1, MSG_PEEK | MSG_DONTWAIT) > 0 &&
	    message_receive(p->fd, &m, p->room, fds) == 0) {
		if (m.bytes <= sizeof(p->room))
			learn(p, &m, fds);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				(void)close(fds[i]);
	} else if (goes_on) {
		abort(); /* it has not answered */
	}
	return goes_on;
}

/* Write to a ring what in says. */
static void ring(struct program *p, struct input *in)
{
	uint8_t which = take(in), words = take(in), by;
	struct far_ring *r;
	unsigned int tail;
	uint64_t *to;

	if (p->ring_count == 0)
		return;
	which = (uint8_t)(which % p->ring_count);
	r = p->rings[which];
	tail = atomic_load(&r->tail);
	to = r->slots[tail & (p->slots[which] - 1)].words;
	for (uint32_t i = 0; i < words % 64; i++) {
		uint64_t value = take_number(in, p);

		if (i < FAR_RECORD_SLOTS * FAR_SLOT_WORDS)
			to[i] = value;
	}
	by = take(in);
	atomic_store(&r->tail, by < 128 ? tail + by : tail - (256u - by));
	if (p->bell >= 0)
		fd_signal(p->bell);
}

/* ---- one input ---------------------------------------------------------------------- */

static bool connected(struct program *p)
{
	struct far_message m = {.op = FAR_HELLO, .a = {FAR_VERSION}};
	int fds[2];

	must(message_send(p->fd, &m, NULL, NULL, 0));
	if (!channel_serve(p->channel))
		return false;
	for (struct client *c = s.clients; c != NULL; c = c->next)
		c->closing = true;
	must(message_receive(p->fd, &m, p->room, fds));
	learn(p, &m, fds);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	return true;
}

/* All that is left is what was there before. */
static void look(void)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	uint8_t data[BYTES];

	must(hal_buffer_read(bytes, 0, data, sizeof(data)));
	for (uint32_t i = 0; i < BYTES; i++)
		if (data[i] != VICTIM)
			abort();
	must(hal_device_get_info(s.dev, &info));
	if (s.clients != NULL || info.memory_free != s.info.memory_free)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct program p;
	struct input in = {data, data + size};
	bool there;
	int fds[2];

	memset(&p, 0, offsetof(struct program, room));
	p.bell = -1;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	p.fd = fds[0];
	p.channel = channel_new(&s, NULL, fds[1]);
	there = connected(&p);
	while (there && in.at < in.end) {
		uint32_t step = take(&in) % (STEPS + 1);

		if (step == RING)
			ring(&p, &in);
		else /* one above is no request */
			there = request(&p, step == STEPS ? UINT32_MAX : step, &in);
	}
	ended += !there;
	(void)shutdown(p.fd, SHUT_RDWR);
	while (there && channel_serve(p.channel))
		;
	channel_end(p.channel);
	channel_free(p.channel);
	for (uint32_t i = 0; i < p.ring_count; i++)
		(void)munmap(p.rings[i], far_ring_bytes(p.slots[i]));
	if (p.bell >= 0)
		(void)close(p.bell);
	(void)close(p.fd);
	look();
	return 0;
}

/* ---- seeds -------------------------------------------------------------------------- */

/* A seed that is being written. */
struct seed {
	uint8_t *at;
	size_t size, max;
};

static void byte(struct seed *d, uint32_t value)
{
	if (d->size < d->max)
		d->at[d->size++] = (uint8_t)value;
}

static void number(struct seed *d, uint64_t value)
{
	if (value != 1 && value < 128) {
		byte(d, (uint32_t)value);
		return;
	}
	byte(d, 1);
	for (int i = 56; i >= 0; i -= 8)
		byte(d, (uint32_t)(value >> i) & 255);
}

/* Begin a request with the numbers, of which -1 - i stands for handle i. */
static void begin(struct seed *d, uint32_t op, const int64_t *numbers)
{
	byte(d, (uint8_t)op);
	byte(d, 0);
	for (int i = 0; i < FAR_NUMBERS; i++)
		if (numbers[i] < 0)
			byte(d, (uint8_t)(127 - numbers[i]));
		else
			number(d, (uint64_t)numbers[i]);
}

static void piece(struct seed *d, const void *data, size_t size)
{
	const uint8_t *from = data;

	for (; size > 0; size--, from++) {
		byte(d, 1);
		byte(d, *from);
	}
}

#define NUMBERS(...) ((const int64_t[FAR_NUMBERS]){__VA_ARGS__})
#define HANDLE(i)    (-1 - (i))

/* A client that makes a partition (handle 0), a buffer (1), a program (2) with a kernel
 * (3), and a queue (4, its timeline 5). */
static void seed_objects(struct seed *d)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	const struct {
		struct hal_ref_image head;
		char name[HAL_REF_NAME];
	} image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 1}, "add"};

	pd.units_floor = 2;
	bd.bytes = BYTES;
	begin(d, FAR_PARTITION, NUMBERS(0));
	piece(d, &pd, sizeof(pd));
	byte(d, 0);
	begin(d, FAR_BUFFER, NUMBERS(HANDLE(0), 0, sizeof(bd)));
	piece(d, &bd, sizeof(bd));
	byte(d, 0);
	begin(d, FAR_PROGRAM, NUMBERS(0));
	piece(d, &image, sizeof(image));
	byte(d, 0);
	begin(d, FAR_QUEUE, NUMBERS(HANDLE(0), 5));
	piece(d, &qd, sizeof(qd));
	byte(d, 0);
}

/* A launch by a request, which also places the program. */
static void seed_submit(struct seed *d)
{
	const struct far_work w = {
		.size = sizeof(struct hal_submit_desc), .cmd_count = 1, .arg_count = 1};
	struct hal_cmd cmd = {.op = HAL_OP_LAUNCH};
	uint64_t rest[2] = {0, 0};

	cmd.launch.arg_count = 1;
	begin(d, FAR_SUBMIT, NUMBERS(HANDLE(4)));
	piece(d, &w, sizeof(w));
	piece(d, &cmd, 8);
	byte(d, 128 + 3);
	piece(d, (const char *)&cmd + 16, sizeof(cmd) - 16);
	byte(d, 128 + 1);
	piece(d, rest, sizeof(rest));
	byte(d, 0);
	begin(d, FAR_WAIT, NUMBERS(0, 0));
	byte(d, 128 + 5);
	piece(d, (const uint64_t[]){1}, 8);
	byte(d, 0);
}

/* Launches in the ring. */
static void seed_ring(struct seed *d)
{
	struct far_slot slot = {
		.op = HAL_OP_LAUNCH, .marks = FAR_LAST | FAR_WHOLE, .arg_count = 1};

	for (int i = 0; i < 3; i++)
		slot.launch.groups[i] = 1;
	for (int i = 0; i < 5; i++) {
		byte(d, RING);
		byte(d, 0);
		byte(d, 11);
		number(d, slot.words[0]);
		byte(d, 128 + 3);
		for (int k = 2; k < 8; k++)
			number(d, slot.words[k]);
		byte(d, 128 + 1);
		number(d, 0);
		number(d, BYTES);
		byte(d, 2);
	}
	begin(d, FAR_DEVICE_POLL, NUMBERS(1000));
	byte(d, 0);
}

/* One request of each operation, with the first handle of its kind where it has one. */
static void seed_all(struct seed *d)
{
	static const uint8_t first[FAR_OPS] = {
		[FAR_BUFFER_DESTROY] = 1,  [FAR_BUFFER_WRITE] = 1,
		[FAR_BUFFER_READ] = 1,     [FAR_BUFFER_MAP] = 1,
		[FAR_BUFFER_UNMAP] = 1,    [FAR_BUFFER_EXPORT] = 1,
		[FAR_BUFFER_RECOLOR] = 1,  [FAR_PROGRAM_NAME] = 2,
		[FAR_PROGRAM_INFO] = 2,    [FAR_PROGRAM_UNLOAD] = 2,
		[FAR_QUEUE_DESTROY] = 4,   [FAR_QUEUE_SUSPEND] = 4,
		[FAR_QUEUE_RESUME] = 4,    [FAR_QUEUE_STATS] = 4,
		[FAR_QUEUE_FAULT] = 4,     [FAR_SEQUENCE_SUBMIT] = 4,
		[FAR_TIMELINE_VALUE] = 5,  [FAR_TIMELINE_SIGNAL] = 5,
		[FAR_TIMELINE_EXPORT] = 5, [FAR_POINT_FD] = 5,
	};

	for (uint32_t op = FAR_HELLO + 1; op < FAR_OPS; op++) {
		begin(d, op, NUMBERS(HANDLE(first[op]), 64, 64));
		byte(d, 0);
	}
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	static void (*const parts[])(struct seed * d) = {seed_submit, seed_ring,
							 seed_all};
	struct seed d = {.at = data, .max = max};

	if (index > ARRAY_LENGTH(parts))
		return 0;
	seed_objects(&d);
	for (unsigned int i = 0; i < index; i++)
		parts[i](&d);
	return d.size;
}
