/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hald.h - a process that serves a device to the programs of others.
 *
 * hald is an application of hal.h.  A thread for each channel (core/far/wire.h) reads a
 * request, carries it out by the function of hal.h that the request names, and answers.
 * A client is all channels of one open device of one program, and what it has created.
 * When its process ends, or its last channel closes, its work is stopped and everything
 * of it is destroyed.
 *
 * Whatever a client sends may be anything.  A request that no correct library sends ends
 * the client.
 */
#ifndef HALD_HALD_H
#define HALD_HALD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <hal/hal.h>

#include "api/inlet.h"
#include "far/names.h"
#include "far/wire.h"
#include "tenant.h"

/* ---- handles (handles.c) ----------------------------------------------------------- */

/* An object of a client.  Guarded by the lock of its table, except .lock and what that
 * guards. */
struct entry {
	struct far_name name; /* for the engine */
	void *object;         /* NULL: unused */
	uint32_t generation;
	uint8_t kind;
	bool owned;        /* the client destroys it; else it goes with .parent */
	bool destroyed;    /* a request destroys it now */
	uint32_t users;    /* requests that use it */
	uint64_t parent;   /* handle; 0: none */
	struct ring *ring; /* of a queue; NULL: it has none */
	/* What a partition counts for.  Written under the tenant's .lock, too. */
	uint64_t units, memory_quota, bandwidth;
	/* Of a partition: what it has done is part of .past.  Set and cleared under the
	 * tenant's .lock_past, too. */
	bool settled;
	uint16_t service_class; /* of a queue */
	/* Of what one thread at a time may use: a queue, sequence or ring. */
	pthread_mutex_t lock;
	/* Of host memory: where hald has mapped it.  The client has destroyed it, but
	 * work uses it still (.doomed). */
	void *memory;
	uint64_t memory_bytes;
	bool doomed;
};

/* An array of names that was too small; the engine may still read it. */
struct outgrown {
	struct outgrown *next;
	struct far_name **at;
};

struct handles {
	pthread_mutex_t lock;
	struct far_names names; /* of all entries; .count of them */
	struct outgrown *outgrown;
	struct tenant *tenant;  /* whom queues and partitions count for */
	uint32_t count, living; /* .living: those in use that the client owns */
};

void handles_begin(struct handles *t, struct tenant *tenant);
void handles_end(struct handles *t);
/* Return a new handle for object, or the one that it has; 0 with an error. */
uint64_t handle_add(struct handles *t, enum far_kind kind, void *object, bool owned,
		    uint64_t parent);
/* The same for an object that the client owns, but no request finds it before
 * handle_end_destroy(t, *e, false). */
uint64_t handle_add_hidden(struct handles *t, enum far_kind kind, void *object,
			   struct entry **e);
/* Begin to use the object of a handle.  Return NULL, with -EINVAL as the error, if the
 * handle is of no live object of that kind. */
struct entry *handle_hold(struct handles *t, uint64_t handle, enum far_kind kind);
/* The same for the i-th entry, if its object is of kind and owned; NULL without an error.
 */
struct entry *handle_hold_at(struct handles *t, uint32_t i, enum far_kind kind);
void handle_release(struct handles *t, struct entry *e);
/* Begin to destroy e, which the caller holds.  Return -EBUSY if another request uses it,
 * else 0: no other request, and no record taken after inlet_pass, can begin to. */
int handle_begin_destroy(struct handles *t, struct entry *e);
/* End that: if the object was destroyed, forget it and what belongs to it. */
void handle_end_destroy(struct handles *t, struct entry *e, bool destroyed);
/* The client has destroyed e, whose object is still in use: nobody finds it now. */
void handle_doom(struct handles *t, struct entry *e);
/* Return the i-th entry, of .count.  The caller holds the lock, or is the client's last
 * thread. */
struct entry *entry_at(const struct handles *t, uint32_t i);
/* Return the object of the i-th entry if it is of kind and owned, else NULL. */
void *handle_at(struct handles *t, uint32_t i, enum far_kind kind);

/* Capabilities that a device has only in the process that has opened it. */
#define CAPS_OF_ONE_PROCESS (HAL_CAP_PRIVATE | HAL_CAP_HOST_REGISTER)

/* Capabilities that show when something happens. */
#define CAPS_OF_TIME                                                                     \
	(HAL_CAP_MAP | HAL_CAP_EXPORT | HAL_CAP_IMPORT | HAL_CAP_HOST_COPY |             \
	 HAL_CAP_TIMESTAMP)

struct server;
/* Return what clients of s see of caps. */
uint64_t caps_of_clients(const struct server *s, uint64_t caps);

/* ---- clients (client.c) ------------------------------------------------------------ */

struct channel;
struct trace;
struct trace_counts;

/* The ring of a queue, whose records the client writes (far/ring.h). */
struct ring {
	struct ring *next; /* in .rings of the client */
	struct inlet inlet;
	struct far_ring *shared;
	uint64_t bytes;
	uint32_t users; /* threads that use .inlet; guarded by the client's lock */
};

/* A host function that a client has to call. */
struct callback {
	/* In .made of the client, from its submission on.  A command that is dropped
	 * never calls it. */
	struct callback *next_made, **made;
	struct callback *next; /* in .callbacks of the client, while it is called */
	struct client *client;
	uint64_t number, fn, user;
	struct hal_queue *queue; /* that waits for it; NULL: a thread does */
	bool returned;
};

struct turn;

/* The place of a client in the lockstep; guarded by the lock of that. */
struct seat {
	struct seat *next;
	int64_t tenant; /* what seats are ordered by: its tenant's place, then .client */
	uint64_t client;
	struct turn *turns; /* threads that carry out its requests, or are to */
	uint64_t since_ns;  /* when it was last answered */
	bool ended, reaped; /* its process has; and it is being put away */
};

struct client {
	struct client *next;
	struct seat seat;
	struct client *next_bell; /* in .bell_clients of the server */
	struct server *server;
	struct tenant *tenant;
	bool is_operator; /* its user is that of hald, or root */
	uint64_t number, secret;
	uint64_t came_ns; /* device time */
	atomic_int ended; /* enum ended; ENDED_UNKNOWN: it lives */
	/* What destroyed partitions have done; guarded by the tenant's .lock_past. */
	struct tally past;
	pid_t pid;
	int pidfd;
	struct handles handles;
	struct far_board *board; /* also mapped by the client, which cannot write it */
	int board_fd;            /* -1 once the client has it */
	int bell; /* eventfd of the client, which may do with it what it likes */
	atomic_bool had_rings;
	/* Guards what follows. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct channel *channels;
	uint32_t channel_count;
	bool closing; /* hal_close, or its end: no host function is called any more */
	struct callback *made;
	struct callback *callbacks; /* that have not returned */
	uint64_t called;            /* number of the last one */
	uint64_t taken;             /* number of the last one that it was told */
	struct ring *rings;
	uint32_t ring_count;
	uint64_t told[FAR_RINGS_MAX / 64 + 1]; /* a bit for each use of .board->told */
	struct trace *trace; /* that it writes; NULL: none, or one is being started */
	bool traces;
	uint64_t trace_bytes; /* memory of the trace, part of .has of the tenant */
};

/* What hald has got from its supervisor, such as systemd. */
struct service {
	int socket;                 /* listening; -1: hald makes its own */
	int notify;                 /* sends notifications; -1: none are wanted */
	struct sockaddr_un address; /* of notifications */
	socklen_t address_bytes;
	uint64_t beat_ns; /* interval of WATCHDOG=1; 0: none is wanted */
	uint64_t next_ns; /* CLOCK_MONOTONIC; when the next one is due */
};

struct server {
	struct hal_device *dev;
	struct hal_device_info info;
	struct service service;
	const char *name, *folder; /* of the socket */
	char path[256];            /* of the socket; @NAME: an abstract one */
	int socket, stop_fd, epoll;
	int over_fd;  /* eventfd: a channel's thread is over */
	int spare_fd; /* to be closed when there are no others */
	int bells;    /* an epoll of the clients' bells, and of .wrong_fd */
	int wrong_fd; /* eventfd: an inlet has refused a record */
	pthread_t bell_thread;
	atomic_bool bells_stop;
	pthread_mutex_t bell_lock; /* guards .bell_clients; held for short alone */
	struct client *bell_clients;
	struct channel *channels; /* used by the main thread alone */
	uint32_t channel_count;
	uint32_t descriptors;   /* that hald may have at most */
	pthread_mutex_t lock;   /* guards what follows */
	struct tenant *tenants; /* at least one */
	/* Of the operator, where no section is for it, so that none locks it out. */
	struct tenant *operator_tenant;
	/* What clients of removed tenants have done; NULL: nobody counts that. */
	struct tenant *removed;
	int64_t start_s; /* CLOCK_REALTIME */
	int64_t next_at;
	struct client *clients;
	uint64_t client_count;
	struct lockstep *lockstep;       /* NULL: clients are served as they come */
	uint64_t tick_ns;                /* between two ticks; 0: there are none */
	atomic_uint_fast64_t ticks_late; /* requests that have missed their tick */
};

/* Make a channel of a connection to the socket of t (NULL: the device's); NULL: there is
 * no memory. */
struct channel *channel_new(struct server *s, struct tenant *t, int fd);
/* Carry out one request.  Return false once the channel is to be ended. */
bool channel_serve(struct channel *ch);
/* Take ch from its client, which goes with its last channel, and shut the connection. */
void channel_end(struct channel *ch);
void channel_free(struct channel *ch);
/* What the numbers that epoll gives back stand for, beside clients: the sockets of
 * tenants count down from AT_TENANT. */
enum { AT_SOCKET = -1, AT_STOP = -2, AT_OVER = -3, AT_TENANT = -4 };

/* Serve the connections of s->socket until s->stop_fd is readable.  Return 0 or -errno.
 */
int serve(struct server *s);
/* End c: shut its channels, so that their threads end. */
void client_end(struct client *c);
/* The same for the client of that number, if it is there. */
void client_end_number(struct server *s, uint64_t number);
/* The same; the caller holds the client's lock. */
void client_end_locked(struct client *c);
/* Destroy the host memory that c has destroyed and that no work uses any more. */
void client_sweep(struct client *c);
/* Destroy all that c has created, and stop its work. */
void client_reap(struct client *c);

/* ---- traces (trace.c) -------------------------------------------------------------- */

/* Complete the trace that c has begun, if it has begun one. */
int client_trace_stop(struct client *c, struct trace_counts *counts);
/* The same in two steps: write no more events, and complete the file. */
void client_trace_end(struct client *c);
void client_trace_close(struct client *c);

/* ---- host functions ---------------------------------------------------------------- */

/* Make a host function of c, fn(user) there; NULL with an error. */
struct callback *callback_new(struct client *c, uint64_t fn, uint64_t user);
void callback_free(struct callback *cb);
/* Free those of c whose commands have been dropped.  c has no queues any more. */
void callbacks_forget(struct client *c);
/* The function of each HAL_OP_HOST that a client submits; user: a struct callback. */
void callback_run(void *user);
/* The client's function of that number has returned. */
void callback_returned(struct client *c, uint64_t number);
/* Let the queues of c, which is closing, go on behind host functions. */
void callbacks_release(struct client *c);

/* ---- sockets and tenants (sockets.c) -------------------------------------------------- */

/* Permissions of a socket to which anybody may connect, and hear whether he may stay. */
#define SOCKET_FOR_ALL 0666
/* Listen at path, unless another hald does, with these permissions; 0: those that umask
 * leaves.  Return the descriptor or -errno. */
int listen_at(const char *path, mode_t mode);
/* Make the sockets of all tenants that have one; and remove them, with the tenants. */
int tenants_listen(struct server *s);
void tenants_forget(struct server *s);
/* Write the path of t's socket to path. */
void socket_path(const struct server *s, const struct tenant *t, char path[256]);
/* Have epoll tell of connections to the socket of t. */
int tenant_watch(const struct server *s, const struct tenant *t);
/* Return the tenant for which epoll gives back `at`, and use it until tenant_put; NULL:
 * it has been removed. */
struct tenant *tenant_use_at(struct server *s, int64_t at);
void tenant_put(struct server *s, struct tenant *t);
/* Add the tenant whose section is text.  path: of its socket; "": it has none. */
int tenant_add(struct server *s, const char *text, char path[256]);
/* Remove a tenant, not that of c, which asks for this, and end its clients. */
int tenant_remove(struct server *s, const struct client *c, const char *name);
/* Write a line for each tenant: name, clients, units, memory, queues, path of its socket,
 * with tabs between them. */
int tenants_text(struct server *s, char *text, size_t room);

/* ---- what clients have done (tally.c, status.c) ---------------------------------------- */

/* Note how c ends, unless that is known. */
void client_ends(struct client *c, enum ended how);
/* Add what `more` counts to sum; and subtract what `less` counts from it. */
void tally_add(struct tally *sum, const struct tally *more);
void tally_subtract(struct tally *sum, const struct tally *less);
/* Read what part has done since it was created, and its statistics without .now_ns. */
void tally_read(struct hal_partition *part, struct tally *done, struct hal_stats *stats);
/* Add what the partition of e has done to its client and tenant.  Call before the
 * partition is destroyed; until tally_unsettle nobody reads its statistics.  *done: what
 * was added. */
void tally_settle(struct client *c, struct entry *e, struct tally *done);
/* Take that back: the partition could not be destroyed. */
void tally_unsettle(struct client *c, struct entry *e, const struct tally *done);

/* ---- configuration (check.c) ----------------------------------------------------------- */

/* Print the first error of a file of hal.conf(5), or of hald.conf(5) if it has a section
 * of a tenant, as FILE:LINE: TEXT.  Return the exit status. */
int check_file(const char *file);
/* ---- the supervisor (service.c) -------------------------------------------------------- */

/* Read the variables that a supervisor sets, and unset them: LISTEN_PID, LISTEN_FDS and
 * LISTEN_FDNAMES (the listening socket), NOTIFY_SOCKET (address of notifications),
 * WATCHDOG_USEC and WATCHDOG_PID.  Return 0, also if there are none, or -errno with a
 * text that names the variable.  Call before any thread is started. */
int service_begin(struct service *sv);
/* Write the address of sv->socket to path; an abstract one begins with @. */
void service_path(const struct service *sv, char *path, size_t size);
/* Send READY=1, and what s serves where. */
int service_ready(struct server *s);
/* If WATCHDOG=1 is due, wait until the engine has handled a message, then send it: the
 * supervisor kills hald if the engine is blocked.  Return the number of ms until the next
 * one is due; -1: none is wanted.  Main thread only. */
int service_beat(struct server *s);
/* Send STOPPING=1. */
void service_stopping(const struct service *sv);
void service_end(struct service *sv);

/* ---- rings (ring.c) ---------------------------------------------------------------- */

/* Begin to answer bells, and end that. */
int bells_start(struct server *s);
void bells_stop(struct server *s);
/* Make the board and the bell of c. */
int board_make(struct client *c);
void board_free(struct client *c);
/* Make a ring for q, a new queue of c; *fd is its memory.  Return NULL, with an error, if
 * there can be none. */
struct ring *ring_make(struct client *c, struct hal_queue *q, int *fd);
/* Free a ring whose queue has been destroyed, or whose inlet is closed. */
void ring_free(struct client *c, struct ring *ring);
/* Take ring from c, so that no thread uses its inlet; and put it back. */
void ring_withdraw(struct client *c, struct ring *ring);
void ring_put_back(struct client *c, struct ring *ring);
/* Return once all that c has submitted so far has been taken. */
void rings_take(struct client *c);
/* Have the engine take what any client has submitted so far, before it does other work.
 */
void rings_take_all(struct server *s);
/* Take nothing of c any more. */
void rings_close(struct client *c);

/* ---- lockstep (lockstep.c) --------------------------------------------------------- */

enum { LOCKSTEP_MAX = 4096 };

/* Serve clients in lockstep: nothing happens before so many have come. */
int lockstep_make(struct server *s, uint32_t clients);
void lockstep_free(struct server *s);
/* c, which has just come, takes part; and not any more.  All of these do nothing without
 * a lockstep. */
void lockstep_join(struct client *c);
void lockstep_part(struct client *c);
/* Wait for the turn of c, for a request or, if ends is set, to put away what it has left.
 * Return false if c has ended meanwhile: then there is no turn. */
bool lockstep_enter(struct client *c, bool ends);
/* End the turn: the request has been answered. */
void lockstep_leave(struct client *c);
/* Within a turn, wait until over(arg) holds, or device time until_ns has come
 * (UINT64_MAX: none), or nothing is left that could happen.  Return false if c has ended
 * meanwhile.  over may be called by any thread. */
bool lockstep_wait(const struct client *c, bool (*over)(void *arg), void *arg,
		   uint64_t until_ns);
/* c is about to end. */
void lockstep_end(struct client *c);

/* ---- ticks (tick.c) ---------------------------------------------------------------- */

enum { TICK_US_MIN = 20, TICK_US_MAX = 1000000 };

/* Carry out requests, and answer them, only each so many microseconds; text: how many. */
int tick_make(struct server *s, const char *text);
/* Sleep until a request of c (NULL: its first one) that was sent at sent_ns
 * (CLOCK_REALTIME; 0: not known) is to be carried out.  Return that tick, in
 * CLOCK_MONOTONIC.  All of these do nothing without ticks. */
uint64_t tick_begin(const struct server *s, const struct client *c, uint64_t sent_ns);
/* Sleep until the answer of that request may be sent.  waits: it may last. */
void tick_answer(struct server *s, const struct client *c, uint64_t begin, bool waits);
/* Return the next tick of the device's time ns, as a client may see it. */
uint64_t tick_round(const struct server *s, uint64_t ns);
/* Take from the answer what tells when something happened: all times are 0. */
void tick_blur(const struct server *s, struct hal_stats *stats);

/* ---- requests (requests.c) --------------------------------------------------------- */

/* A request, and its answer. */
struct request {
	struct client *client;
	int socket; /* of the channel */
	struct far_message m;
	const char *data; /* payload, .m.bytes bytes, aligned to 16 */
	int fd;           /* of the operation; -1: none */
	/* The answer; the rest of it is in .m. */
	char *out; /* payload; freed after it was sent */
	uint64_t out_bytes;
	int out_fd;  /* -1: none; closed after it was sent */
	int out_fd2; /* -1: none; only beside .out_fd; not closed */
	bool broken; /* no correct library sends this request */
};

/* Carry out r.  Return what the function of hal.h returned. */
int request_run(struct request *r);

#endif
