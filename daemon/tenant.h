/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.h - who may use the device, and how much of it.
 *
 * The file of hald's option --tenants has a section [tenant "name"] for each tenant, and
 * administrators add and remove others while hald runs.  A client is of the tenant whose
 * socket it has connected to, else of the first section that fits its label, control
 * group, user and group.  Limits are sums over all clients of a tenant.  Without the
 * option all clients are of one tenant without limits.
 */
#ifndef HALD_TENANT_H
#define HALD_TENANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hal/hal.h>

#include "peer.h"

struct client;
struct entry;
struct server;

#define TENANT_NO_LIMIT UINT64_MAX

/* What partitions have done since they were created. */
struct tally {
	uint64_t busy_ns;
	uint64_t submitted, completed, failed, deadline_misses; /* commands, misses */
	/* Submissions that ended without error, submit until all of it ended: the sum,
	 * and counts by powers of two as hal_stats.latency_histogram. */
	uint64_t request_ns, requests[HAL_HISTOGRAM_BUCKETS];
};

/* How a client has ended. */
enum ended {
	ENDED_UNKNOWN,
	ENDED_EXIT,     /* it has closed the device */
	ENDED_KILLED,   /* its process has ended without that */
	ENDED_PROTOCOL, /* it has sent what no library sends, or held up all others */
	ENDED_REMOVED,  /* its tenant was removed */
	ENDED_WAYS,
};

/* Errors that count as refusals; see tenant_refused. */
enum { REFUSALS = 8 };

struct tenant {
	struct tenant *next; /* in the order of the file */
	char name[32];
	char source[160]; /* place of the section's header */
	int64_t uid, gid; /* -1: any */
	/* A security label, the beginning of a path of a control group, and a part of
	 * one;
	 * "": any. */
	char label[128], cgroup[256], unit[128];
	/* It has a socket of its own, and no other way in.  .uid and .gid own that. */
	bool socket;
	int fd;     /* of that socket; -1: none */
	int64_t at; /* what epoll gives back for it */
	/* Guarded by the lock of the server: clients and connections of the tenant, and
	 * whether it goes with the last. */
	uint32_t users;
	bool removed;
	uint64_t number; /* of no other tenant; not 0 */
	/* Urgency is inherited between queues of one number alone; 0: it lends. */
	uint64_t owner;
	/* Most of each that its clients have together; TENANT_NO_LIMIT: any number. */
	uint64_t units, memory, bandwidth, partitions, queues, clients;
	/* What they have, without .clients. */
	struct {
		_Atomic uint64_t units, memory, bandwidth, partitions, queues;
	} has;
	uint64_t trace_bytes; /* memory of its traces in hald; guarded by .lock */
	uint32_t classes;     /* bit (1 << enum hal_class) */
	int64_t priority_max, weight_max;
	bool deadlines, place, lend, admin;
	bool sees_all;           /* what others have and do is no secret to it */
	uint64_t requests_per_s; /* TENANT_NO_LIMIT: any number */
	uint64_t turn_ns;        /* when its next request is due; guarded by .lock_turn */
	pthread_mutex_t lock_turn;
	/* Held while a client creates something that counts. */
	pthread_mutex_t lock;
	/* Requests that were refused, by refusal_name, and clients that have ended. */
	_Atomic uint64_t refused[REFUSALS], ended[ENDED_WAYS];
	/* What destroyed partitions have done; guarded by .lock_past. */
	struct tally past;
	pthread_mutex_t lock_past;
};

/* Read the sections of a file into *list.  Return 0 or -errno; the text says where. */
int tenants_load(const char *file, struct tenant **list);
/* The same for sections in text. */
int tenants_load_text(const char *text, struct tenant **list);
/* Return a tenant without limits; NULL with an error. */
struct tenant *tenant_unlimited(const char *name);
void tenants_free(struct tenant *list);

/* Return the first tenant that peer fits; NULL, with -EACCES as the error, if it fits
 * none. */
struct tenant *tenant_find(struct tenant *list, const struct peer *peer);

/* Return whether t's section fits all that connect to the device's socket. */
bool tenant_is_anybodys(const struct tenant *t);

/* Check what a client asks for.  The caller holds the tenant's .lock from before the
 * check until what was asked for exists.  Return 0; -EPERM if the tenant may not have
 * this, -EDQUOT if it may not have so much of it.  except: a partition whose units and
 * memory do not count, as d replaces them; NULL: none. */
int tenant_check_partition(const struct client *c, const struct hal_partition_desc *d,
			   const struct entry *except);
int tenant_check_queue(const struct client *c, const struct hal_queue_desc *d);
/* Count the units and the memory of e, a partition that d describes from now on.  What an
 * entry counts for ends with it. */
void tenant_count_partition(struct client *c, struct entry *e,
			    const struct hal_partition_desc *d);
void tenant_uncount(struct tenant *t, struct entry *e);
/* Replace what info and stats, of the device, tell of other tenants by what c's own has.
 */
void tenant_info(const struct client *c, struct hal_device_info *info);
int tenant_stats(struct client *c, struct hal_stats *stats);
/* Wait until a request of c is due: its tenant has made too many. */
void tenant_turn(struct client *c);
/* The same for terms of a submission. */
int tenant_check_work(const struct client *c, const struct hal_submit_desc *d);

/* Count err, the result of a request, if it is a refusal. */
void tenant_refused(struct tenant *t, int err);
/* Return the name of the i-th error that counts as one, e.g. "EPERM". */
const char *refusal_name(uint32_t i);
/* Add what the clients of t, which goes, have done to sum. */
void tenant_add_past(struct tenant *sum, struct tenant *t);

#endif
