/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.h - memory and streams of the application from which buffers and queues are made.
 *
 * An offer belongs to the thread that made it.  It is for the next creation that this
 * thread asks for, whichever thread carries that out (hal_host.caller).  So one tenant's
 * creation never gets what another tenant has offered.  Any thread may call these
 * functions.
 */
#ifndef BACKENDS_STREAM_OFFER_H
#define BACKENDS_STREAM_OFFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hal/backend.h>

struct stream_offer;

/* All offers of a device. */
struct stream_offers {
	const struct hal_host *host;
	const char *backend; /* name of it and of the device, for messages */
	uint32_t device;
	pthread_mutex_t lock; /* of the list */
	struct stream_offer *first;
};

void stream_offers_init(struct stream_offers *o, const struct hal_host *host,
			const char *backend, uint32_t device);
/* Withdraw all offers. */
void stream_offers_fini(struct stream_offers *o);

/* Offer memory or a stream that the vendor has checked, for the calling thread.  bytes 0
 * or stream NULL withdraws the thread's offer.  -EBUSY: it has one already.  -ENOMEM. */
int stream_offer_memory(struct stream_offers *o, uint64_t address, uint64_t bytes);
int stream_offer_stream(struct stream_offers *o, void *stream);

/* Return whether the caller of this operation has offered memory of exactly so many
 * bytes.  The offer stays: the creation may still fail. */
bool stream_offered_memory(struct stream_offers *o, uint64_t bytes, uint64_t *address);
/* Return the stream that the caller of this operation has offered, or NULL.  The offer
 * stays. */
void *stream_offered_stream(struct stream_offers *o);

/* Withdraw the caller's offer, from which the operation has made an object. */
void stream_took_memory(struct stream_offers *o);
void stream_took_stream(struct stream_offers *o);

#endif
