/* SPDX-License-Identifier: Apache-2.0 */
/* mock_backend.c - the plugin behind mock.h. */
#define _GNU_SOURCE
#include "mock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hal/backend.h>

#ifndef MOCK_ABI
#define MOCK_ABI HAL_BACKEND_ABI
#endif
#ifndef MOCK_NAME
#define MOCK_NAME "mock"
#endif

#define COMMANDS 512
#define EVENTS   1024

static const struct hal_host *host;

struct mock_queue {
	uint32_t mode; /* asked to suspend; UINT32_MAX: not */
	uint64_t cookie;
	int quiet_due;
	int drains; /* HAL_BK_QUIET comes after its last command */
};

struct mock_command {
	struct hal_bk_cmd cmd;
	struct mock_queue *queue;
};

enum { MOVES = 8 };

struct mock_move {
	uint64_t cookie;
	int status;
};

struct mock {
	pthread_mutex_t lock; /* the test tells it things from outside the device lock */
	uint64_t now, early;
	uint32_t units, rows, colors, modes, caps_resize, partitions;
	int64_t says_rows, says_cols;
	uint64_t memory, lacks;
	uint64_t worst_ns[HAL_SUSPEND_KILL + 1];
	struct mock_command commands[COMMANDS];
	uint32_t count;
	struct hal_bk_event events[EVENTS];
	uint32_t event_count;
	struct mock_queue *queues[COMMANDS];
	uint32_t queue_count;
	struct mock_move moves[MOVES]; /* that were asked for, in order */
	uint32_t move_count;
	uint32_t refuse, refuse_resume, refuse_stop, refuse_move;
	uint32_t accept_moves; /* resizes that .refuse_move does not concern */
	int refuse_err, resume_err, stop_err, move_err, move_at_once;
	int lost;
	int event_fd;
	struct mock_counts counts;
};

struct mock_mem {
	uint64_t bytes;
	unsigned char data[];
};

struct mock_kernel {
	char name[32];
	uint32_t args;
};

struct mock_program {
	uint32_t count;
	struct mock_kernel kernels[16];
};

static const struct hal_option_def options[] = {
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "virtual", "whose time"},
	{"units", HAL_OPTION_INT, 1, 4096, NULL, "16", "compute units"},
	{"rows", HAL_OPTION_INT, 1, 64, NULL, "1", "rows they form"},
	{"says_rows", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "-1: rows"},
	{"says_cols", HAL_OPTION_INT, -1, INT32_MAX, NULL, "-1", "-1: units/rows"},
	{"lacks", HAL_OPTION_INT, 0, INT64_MAX, NULL, "0", "HAL_CAP_*, a mask"},
	{"colors", HAL_OPTION_INT, 0, 65, NULL, "0", "memory channels"},
	{"memory", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "1M", "bytes"},
	{"modes", HAL_OPTION_INT, 0, 15, NULL, "9", "suspend modes, a mask"},
	{"fold_ns", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0", "worst case of FOLD"},
	{"save_ns", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0", "worst case of SAVE"},
	{"kill_ns", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0", "worst case of KILL"},
	{"resize", HAL_OPTION_ENUM, 0, 0, "none|idle|live", "live", "when"},
	/* 70: more than a word of the program's bitmap has bits */
	{"partitions", HAL_OPTION_INT, 0, 256, NULL, "70", "at most"},
	{"devices", HAL_OPTION_INT, 0, 4, NULL, "1", "how many there are"},
	{"eventfd", HAL_OPTION_BOOL, 0, 0, NULL, "yes", "real clock: has an event fd"},
};

/* ---- cold ------------------------------------------------------------------------ */

static int mock_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		      uint32_t max)
{
	int64_t n = host->option_int(cfg, "devices");

	if (n == 0)
		return host->fail(ENODEV, "mock: option devices is 0");
	for (uint32_t i = 0; i < max && i < n; i++)
		out[i].unit_cols = 16;
	return (int)n;
}

static int mock_open(const struct hal_bk_config *cfg, uint32_t index, void **dev)
{
	struct mock *m;

	if (index >= host->option_int(cfg, "devices"))
		return host->fail(ENODEV, "mock: no device %u", index);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return host->fail(ENOMEM, "mock: no memory");
	pthread_mutex_init(&m->lock, NULL);
	m->rows = (uint32_t)host->option_int(cfg, "rows");
	m->units = (uint32_t)host->option_int(cfg, "units");
	m->colors = (uint32_t)host->option_int(cfg, "colors");
	m->memory = (uint64_t)host->option_int(cfg, "memory");
	m->modes = (uint32_t)host->option_int(cfg, "modes");
	m->worst_ns[HAL_SUSPEND_FOLD] = (uint64_t)host->option_int(cfg, "fold_ns");
	m->worst_ns[HAL_SUSPEND_SAVE] = (uint64_t)host->option_int(cfg, "save_ns");
	m->worst_ns[HAL_SUSPEND_KILL] = (uint64_t)host->option_int(cfg, "kill_ns");
	m->caps_resize = (uint32_t)host->option_int(cfg, "resize");
	m->partitions = (uint32_t)host->option_int(cfg, "partitions");
	m->says_rows = host->option_int(cfg, "says_rows");
	m->says_cols = host->option_int(cfg, "says_cols");
	m->lacks = (uint64_t)host->option_int(cfg, "lacks");
	m->event_fd = -1;
	if (host->option_int(cfg, "eventfd") != 0)
		m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*dev = m;
	return 0;
}

static void mock_close(void *dev)
{
	struct mock *m = dev;

	if (m->event_fd >= 0)
		close(m->event_fd);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static int mock_get_info(void *dev, struct hal_device_info *info)
{
	const struct mock *m = dev;

	info->kind = HAL_KIND_CPU;
	strcpy(info->name, "a device that waits to be told");
	info->memory_bytes = m->memory;
	info->caps = HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_STAND_IN | HAL_CAP_MAP;
	if (m->rows > 1)
		info->caps |= HAL_CAP_GRID;
	if (m->caps_resize > 0)
		info->caps |= HAL_CAP_RESIZE_IDLE;
	if (m->caps_resize > 1)
		info->caps |= HAL_CAP_RESIZE_LIVE;
	info->unit_rows = m->rows;
	info->unit_cols = m->units / m->rows;
	if (m->says_rows >= 0)
		info->unit_rows = (uint32_t)m->says_rows;
	if (m->says_cols >= 0)
		info->unit_cols = (uint32_t)m->says_cols;
	info->caps &= ~m->lacks;
	info->partitions_max = m->partitions;
	info->colors = m->colors;
	info->preempt = m->modes != 0 ? HAL_PREEMPT_INSIDE : HAL_PREEMPT_NONE;
	info->suspend_modes = m->modes;
	memcpy(info->suspend_worst_ns, m->worst_ns, sizeof(m->worst_ns));
	info->compute_isolation = HAL_ISOLATION_ADVISORY;
	return 0;
}

static int mock_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
				 void **part)
{
	struct mock *m = dev;

	(void)desc;
	m->counts.partitions++;
	*part = &m->counts.partitions; /* something that is not NULL */
	return 0;
}

static int mock_partition_destroy(void *dev, void *part)
{
	(void)part;
	((struct mock *)dev)->counts.partitions--;
	return 0;
}

static int mock_queue_create(void *dev, void *part, int32_t priority, void **queue)
{
	struct mock *m = dev;
	struct mock_queue *q = calloc(1, sizeof(*q));

	(void)part;
	if (q == NULL)
		return host->fail(ENOMEM, "mock: no memory");
	q->mode = UINT32_MAX;
	pthread_mutex_lock(&m->lock);
	if (m->queue_count < COMMANDS)
		m->queues[m->queue_count++] = q;
	m->counts.queues++;
	m->counts.priority = priority;
	pthread_mutex_unlock(&m->lock);
	*queue = q;
	return 0;
}

static void drop_command(struct mock *m, uint32_t i)
{
	m->count--;
	memmove(&m->commands[i], &m->commands[i + 1],
		(m->count - i) * sizeof(m->commands[0]));
}

static int mock_queue_destroy(void *dev, void *queue)
{
	struct mock *m = dev;

	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < m->queue_count; i++)
		if (m->queues[i] == queue)
			m->queues[i] = m->queues[--m->queue_count];
	for (uint32_t i = 0; i < m->count;)
		if (m->commands[i].queue == queue)
			drop_command(m, i);
		else
			i++;
	m->counts.queues--;
	pthread_mutex_unlock(&m->lock);
	free(queue);
	return 0;
}

static int mock_mem_alloc(void *dev, void *part, uint64_t bytes,
			  const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	struct mock *m = dev;
	struct mock_mem *x = malloc(sizeof(*x) + bytes);

	(void)part, (void)colors, (void)flags;
	if (x == NULL)
		return host->fail(ENOSPC, "mock: %llu bytes", (unsigned long long)bytes);
	x->bytes = bytes;
	memset(x->data, 0x5a, bytes); /* somebody else's */
	m->counts.mems++;
	*mem = x;
	return 0;
}

static int mock_mem_free(void *dev, void *mem)
{
	((struct mock *)dev)->counts.mems--;
	free(mem);
	return 0;
}

static int mock_mem_write(void *dev, void *mem, uint64_t offset, const void *data,
			  uint64_t bytes)
{
	(void)dev;
	memcpy(((struct mock_mem *)mem)->data + offset, data, bytes);
	return 0;
}

static int mock_mem_read(void *dev, void *mem, uint64_t offset, void *data,
			 uint64_t bytes)
{
	(void)dev;
	memcpy(data, ((struct mock_mem *)mem)->data + offset, bytes);
	return 0;
}

static int mock_mem_clear(void *dev, void *mem)
{
	struct mock_mem *x = mem;

	(void)dev;
	memset(x->data, 0, x->bytes);
	return 0;
}

static int mock_mem_map(void *dev, void *mem, void **address)
{
	(void)dev;
	*address = ((struct mock_mem *)mem)->data;
	return 0;
}

static int mock_mem_unmap(void *dev, void *mem)
{
	(void)dev, (void)mem;
	return 0;
}

static int mock_program_load(void *dev, const void *image, size_t size, void **prog)
{
	struct mock *m = dev;
	struct mock_program *p = calloc(1, sizeof(*p));
	char text[256], *rest = text, *word;

	if (p == NULL || size >= sizeof(text)) {
		free(p);
		return host->fail(EINVAL, "mock: not an image");
	}
	memcpy(text, image, size);
	text[size] = '\0';
	while ((word = strsep(&rest, " ")) != NULL && p->count < 16) {
		struct mock_kernel *k = &p->kernels[p->count++];
		size_t n = strlen(word);

		strncpy(k->name, word, sizeof(k->name) - 1);
		k->args = word[n - 1] == 'g' ? 16 : (uint32_t)(word[n - 1] - '0');
	}
	m->counts.programs++;
	*prog = p;
	return 0;
}

static int mock_program_unload(void *dev, void *prog)
{
	((struct mock *)dev)->counts.programs--;
	free(prog);
	return 0;
}

static int mock_kernel_get(void *dev, void *prog, uint32_t index,
			   struct hal_bk_kernel_info *info, void **kernel)
{
	struct mock_program *p = prog;

	(void)dev;
	if (index >= p->count)
		return host->fail(ENOENT, "mock: no kernel %u", index);
	memcpy(info->name, p->kernels[index].name, sizeof(info->name));
	info->arg_count = p->kernels[index].args;
	if (info->arg_count > 0)
		info->arg_bytes[0] = 64;
	if (strncmp(info->name, "shaped", 6) == 0) {
		info->group_size[0] = 8;
		info->group_size[1] = 2;
		info->group_size[2] = 1;
		info->group_size_max = 256;
		info->shared_max = 1024;
	}
	*kernel = &p->kernels[index];
	return 0;
}

static int mock_program_bind(void *dev, void *prog, void *part, uint64_t *bytes)
{
	(void)prog, (void)part;
	((struct mock *)dev)->counts.bound++;
	*bytes = MOCK_CONSTANTS;
	return 0;
}

static int mock_program_unbind(void *dev, void *prog, void *part)
{
	(void)prog, (void)part;
	((struct mock *)dev)->counts.bound--;
	return 0;
}

/* ---- hot ------------------------------------------------------------------------- */

static int mock_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	struct mock *m = dev;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	if (m->refuse > 0) {
		m->refuse--;
		err = m->refuse_err == EAGAIN
			      ? -EAGAIN
			      : host->fail(m->refuse_err, "mock: told to refuse");
	} else if (m->count == COMMANDS) {
		err = -EAGAIN;
	} else {
		m->commands[m->count].cmd = *cmd;
		m->commands[m->count++].queue = queue;
		m->counts.submits++;
		m->counts.unrung++;
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

static void mock_doorbell(void *dev)
{
	struct mock *m = dev;

	pthread_mutex_lock(&m->lock);
	m->counts.unrung = 0;
	pthread_mutex_unlock(&m->lock);
}

static int mock_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct mock *m = dev;
	uint32_t n;
	uint64_t drop;

	(void)until_ns;
	pthread_mutex_lock(&m->lock);
	if (m->event_fd >= 0)
		(void)!read(m->event_fd, &drop, sizeof(drop));
	n = m->event_count < max ? m->event_count : max;
	memcpy(ev, m->events, n * sizeof(*ev));
	m->event_count -= n;
	memmove(m->events, m->events + n, m->event_count * sizeof(*ev));
	if (m->event_count > 0 && m->event_fd >= 0) {
		drop = 1;
		(void)!write(m->event_fd, &drop, sizeof(drop));
	}
	n = m->lost ? (uint32_t)host->fail(EIO, "mock: fell off the bus") : n;
	pthread_mutex_unlock(&m->lock);
	return (int)n;
}

static uint64_t mock_now(void *dev)
{
	struct mock *m = dev;
	uint64_t now;

	pthread_mutex_lock(&m->lock);
	now = m->now;
	pthread_mutex_unlock(&m->lock);
	return now;
}

static int mock_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	struct mock *m = dev;
	struct mock_queue *q = queue;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	m->counts.suspends++;
	m->counts.mode = mode;
	if (m->refuse_stop > 0) {
		m->refuse_stop--;
		err = host->fail(m->stop_err, "mock: told not to suspend");
	} else {
		q->mode = mode;
		q->cookie = cookie;
		q->quiet_due = 1;
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

static int mock_resume(void *dev, void *queue)
{
	struct mock *m = dev;
	struct mock_queue *q = queue;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	m->counts.resumes++;
	if (m->refuse_resume > 0) {
		m->refuse_resume--;
		err = host->fail(m->resume_err, "mock: told not to resume");
	} else {
		q->mode = UINT32_MAX;
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

static int mock_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		       uint64_t cookie)
{
	struct mock *m = dev;
	int err = 0, status = 0;

	(void)part, (void)desc;
	pthread_mutex_lock(&m->lock);
	if (m->refuse_move > 0 && m->accept_moves > 0) {
		m->accept_moves--;
	} else if (m->refuse_move > 0) {
		m->refuse_move--;
		status = m->move_err;
		if (m->move_at_once)
			err = host->fail(m->move_err, "mock: told not to move");
	}
	if (err == 0)
		m->moves[m->move_count++] = (struct mock_move){cookie, status};
	pthread_mutex_unlock(&m->lock);
	return err;
}

static int mock_event_fd(void *dev)
{
	return ((struct mock *)dev)->event_fd >= 0 ? ((struct mock *)dev)->event_fd
						   : -ENOTSUP;
}

/* ---- control --------------------------------------------------------------------- */

static void event(struct mock *m, uint32_t kind, int status, uint64_t cookie,
		  uint64_t start, const char *text)
{
	struct hal_bk_event *e = &m->events[m->event_count++];
	uint64_t one = 1;

	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->status = status;
	e->cookie = cookie;
	e->start_ns = start;
	e->end_ns = m->now - m->early;
	e->bytes_read = kind == HAL_BK_DONE ? 10 : 0;
	e->bytes_written = kind == HAL_BK_DONE ? 20 : 0;
	strncpy(e->fault, text, sizeof(e->fault) - 1);
	if (m->event_fd >= 0)
		(void)!write(m->event_fd, &one, sizeof(one));
}

/* Commands of q that have not ended. */
static uint32_t commands_of(const struct mock *m, const struct mock_queue *q)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->count; i++)
		n += m->commands[i].queue == q;
	return n;
}

/* End the command at i, and the DRAIN of its queue if that waited for it. */
static void end_command(struct mock *m, uint32_t i, uint64_t start, int status,
			const char *text)
{
	struct mock_queue *q = m->commands[i].queue;

	event(m, HAL_BK_DONE, status, m->commands[i].cmd.cookie, start, text);
	drop_command(m, i);
	if (!q->drains || commands_of(m, q) != 0)
		return;
	q->drains = 0;
	event(m, HAL_BK_QUIET, 0, q->cookie, m->now, "");
	m->events[m->event_count - 1].bytes_written = 0;
}

/* What FOLD and SAVE have stopped, until it is resumed. */
static int frozen(const struct mock_queue *q)
{
	return (q->mode == HAL_SUSPEND_FOLD || q->mode == HAL_SUSPEND_SAVE) &&
	       !q->quiet_due;
}

/* The oldest command that could end; m->count: there is none. */
static uint32_t oldest(const struct mock *m)
{
	uint32_t i = 0;

	while (i < m->count && frozen(m->commands[i].queue))
		i++;
	return i;
}

static void control_advance(void *native, uint64_t ns)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->now += ns;
	pthread_mutex_unlock(&m->lock);
}

static void control_complete(void *native, uint32_t n, uint64_t ns)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	while (n-- > 0 && oldest(m) < m->count) {
		uint64_t start = m->now;
		uint32_t i = oldest(m);

		m->now += ns;
		end_command(m, i, start, 0, "");
	}
	pthread_mutex_unlock(&m->lock);
}

static void control_complete_together(void *native, uint32_t n, uint64_t ns)
{
	struct mock *m = native;
	uint64_t start;

	pthread_mutex_lock(&m->lock);
	start = m->now;
	m->now += ns;
	while (n-- > 0 && m->count > 0) {
		end_command(m, 0, start, 0, "");
	}
	pthread_mutex_unlock(&m->lock);
}

static void control_fault(void *native, int status, const char *text)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	if (m->count > 0) {
		end_command(m, 0, m->now, status, text);
	}
	pthread_mutex_unlock(&m->lock);
}

static void control_refuse(void *native, uint32_t n, int err)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->refuse = n;
	m->refuse_err = err;
	pthread_mutex_unlock(&m->lock);
}

static void control_refuse_move(void *native, uint32_t n, int status, int at_once)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->refuse_move = n;
	m->move_err = status;
	m->move_at_once = at_once;
	pthread_mutex_unlock(&m->lock);
}

static void control_refuse_later_move(void *native, uint32_t n, int err)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->accept_moves = n;
	m->refuse_move = 1;
	m->move_err = err;
	m->move_at_once = 1;
	pthread_mutex_unlock(&m->lock);
}

static void control_lose(void *native)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->lost = 1;
	pthread_mutex_unlock(&m->lock);
}

static void control_quiet(void *native, uint64_t ns)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < m->queue_count; i++) {
		struct mock_queue *q = m->queues[i];
		uint64_t start = m->now;

		if (!q->quiet_due)
			continue;
		m->now += ns;
		for (uint32_t c = 0; q->mode == HAL_SUSPEND_KILL && c < m->count;) {
			if (m->commands[c].queue != q) {
				c++;
				continue;
			}
			/* Only the first of them had started. */
			event(m, HAL_BK_DONE, -ECANCELED, m->commands[c].cmd.cookie,
			      start, "");
			start = m->now;
			drop_command(m, c);
		}
		q->quiet_due = 0;
		q->drains = q->mode == HAL_SUSPEND_DRAIN && commands_of(m, q) != 0;
		if (q->drains)
			continue;
		event(m, HAL_BK_QUIET, 0, q->cookie, frozen(q) ? start : m->now, "");
		m->events[m->event_count - 1].bytes_written =
			frozen(q) ? MOCK_SAVED_BYTES : 0;
	}
	for (uint32_t i = 0; i < m->move_count; i++)
		event(m, HAL_BK_QUIET, m->moves[i].status, m->moves[i].cookie, m->now,
		      m->moves[i].status != 0 ? "mock: told not to move" : "");
	m->move_count = 0;
	pthread_mutex_unlock(&m->lock);
}

static void control_fail_move(void *native, int status, const char *text)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	if (m->move_count > 0) {
		event(m, HAL_BK_QUIET, status, m->moves[0].cookie, m->now, text);
		memmove(m->moves, m->moves + 1, --m->move_count * sizeof(*m->moves));
	}
	pthread_mutex_unlock(&m->lock);
}

static void control_tell_early(void *native, uint64_t ns)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->early = ns;
	pthread_mutex_unlock(&m->lock);
}

static void control_refuse_resume(void *native, uint32_t n, int err)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->refuse_resume = n;
	m->resume_err = err;
	pthread_mutex_unlock(&m->lock);
}

static void control_refuse_stop(void *native, uint32_t n, int err)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	m->refuse_stop = n;
	m->stop_err = err;
	pthread_mutex_unlock(&m->lock);
}

static void control_counts(void *native, struct mock_counts *out)
{
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	*out = m->counts;
	out->inflight = m->count;
	pthread_mutex_unlock(&m->lock);
}

static int control_shape(void *native, uint32_t i, struct hal_bk_shape *out)
{
	const struct hal_bk_shape *shape = NULL;
	struct mock *m = native;

	pthread_mutex_lock(&m->lock);
	if (i < m->count && m->commands[i].cmd.op == HAL_OP_LAUNCH)
		shape = hal_bk_shape(&m->commands[i].cmd);
	if (shape != NULL)
		*out = *shape;
	pthread_mutex_unlock(&m->lock);
	return shape != NULL;
}

static uint32_t control_peek(void *native, uint32_t i, uint32_t *op)
{
	struct mock *m = native;
	uint32_t pattern = 0;

	pthread_mutex_lock(&m->lock);
	*op = UINT32_MAX;
	if (i < m->count) {
		*op = m->commands[i].cmd.op;
		if (*op == HAL_OP_FILL)
			pattern = m->commands[i].cmd.fill.pattern;
	}
	pthread_mutex_unlock(&m->lock);
	return pattern;
}

static const struct mock_control control = {
	.advance = control_advance,
	.complete = control_complete,
	.fault = control_fault,
	.refuse = control_refuse,
	.refuse_move = control_refuse_move,
	.refuse_later_move = control_refuse_later_move,
	.lose = control_lose,
	.quiet = control_quiet,
	.refuse_resume = control_refuse_resume,
	.refuse_stop = control_refuse_stop,
	.counts = control_counts,
	.peek = control_peek,
	.shape = control_shape,
	.fail_move = control_fail_move,
	.tell_early = control_tell_early,
	.complete_together = control_complete_together,
};

static const void *mock_extension(void *dev, const char *name)
{
	(void)dev;
	return strcmp(name, "mock") == 0 ? &control : NULL;
}

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = MOCK_ABI,
	.name = MOCK_NAME,
	.summary = "a device that waits to be told; for tests",
	.score = -100,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
#ifdef MOCK_SHORT
	/* As compiled when there was nothing behind get_info, and hot ended with now. */
	.cold_size = offsetof(struct hal_bk_cold, partition_create),
	.hot_size = offsetof(struct hal_bk_hot, suspend),
#else
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
#endif
	.cold =
		{
			.probe = mock_probe,
			.open = mock_open,
			.close = mock_close,
			.get_info = mock_get_info,
			.partition_create = mock_partition_create,
			.partition_destroy = mock_partition_destroy,
			.queue_create = mock_queue_create,
			.queue_destroy = mock_queue_destroy,
			.mem_alloc = mock_mem_alloc,
			.mem_free = mock_mem_free,
			.mem_write = mock_mem_write,
			.mem_read = mock_mem_read,
			.mem_clear = mock_mem_clear,
			.mem_map = mock_mem_map,
			.mem_unmap = mock_mem_unmap,
			.program_load = mock_program_load,
			.program_unload = mock_program_unload,
			.kernel_get = mock_kernel_get,
			.program_bind = mock_program_bind,
			.program_unbind = mock_program_unbind,
			.extension = mock_extension,
		},
	.hot =
		{
			.submit = mock_submit,
			.poll = mock_poll,
			.now = mock_now,
			.suspend = mock_suspend,
			.resume = mock_resume,
			.resize = mock_resize,
			.event_fd = mock_event_fd,
			.doorbell = mock_doorbell,
		},
};

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *h);

const struct hal_backend *hal_backend_entry(const struct hal_host *h)
{
	host = h;
#ifdef MOCK_SHORT
	/* The table of that time: its hot operations follow its cold ones at once. */
	static struct {
		_Alignas(struct hal_backend) unsigned char bytes[sizeof(
			struct hal_backend)];
	} old;
	const size_t head = offsetof(struct hal_backend, cold);

	memcpy(old.bytes, &backend, head + backend.cold_size);
	memcpy(old.bytes + head + backend.cold_size, &backend.hot, backend.hot_size);
	return (const struct hal_backend *)(const void *)old.bytes;
#else
	return &backend;
#endif
}
