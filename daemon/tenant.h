/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.h - who may use the device, and how much of it.
 *
 * The file of hald's option --tenants has a section [tenant "name"] for each tenant.  A
 * client is of the tenant whose socket it has connected to, else of the first section
 * that names its user or group, or names neither.  Limits are sums over all clients of a
 * tenant.  Without the option all clients are of one tenant without limits.
 */
#ifndef HALD_TENANT_H
#define HALD_TENANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <hal/hal.h>

struct client;
struct entry;
struct server;

#define TENANT_NO_LIMIT UINT64_MAX

struct tenant {
	struct tenant *next; /* in the order of the file */
	char name[32];
	char source[160]; /* place of the section's header */
	int64_t uid, gid; /* -1: any */
	bool socket;      /* it has a socket of its own, and no other way in */
	int fd;           /* of that socket; -1: none */
	/* Most of each that its clients have together; TENANT_NO_LIMIT: any number. */
	uint64_t units, memory, partitions, queues, clients;
	/* What they have, without .clients. */
	struct {
		_Atomic uint64_t units, memory, partitions, queues;
	} has;
	uint32_t classes; /* bit (1 << enum hal_class) */
	int64_t priority_max, weight_max;
	bool deadlines, place, admin;
	uint64_t requests_per_s; /* TENANT_NO_LIMIT: any number */
	uint64_t turn_ns;        /* when its next request is due; guarded by .lock_turn */
	pthread_mutex_t lock_turn;
	/* Held while a client creates something that counts. */
	pthread_mutex_t lock;
};

/* Read the sections of a file into *list.  Return 0 or -errno; the text says where. */
int tenants_load(const char *file, struct tenant **list);
/* Return a tenant without limits, for a hald without such a file; NULL with an error. */
struct tenant *tenant_everyone(void);
void tenants_free(struct tenant *list);

/* Return the tenant of a process that has connected to the socket of `of` (NULL: the
 * device's own).  NULL, with -EACCES as the error, if it is of none. */
struct tenant *tenant_find(struct tenant *list, struct tenant *of,
			   const struct ucred *who);

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
/* Wait until a request of c is due: its tenant has made too many. */
void tenant_turn(struct client *c);
/* The same for terms of a submission. */
int tenant_check_work(const struct client *c, const struct hal_submit_desc *d);

#endif
