/* SPDX-License-Identifier: Apache-2.0 */
/* offer.c - memory and streams of the application from which buffers and queues are made.
 */
#include "offer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* What one thread offers. */
struct stream_offer {
	struct stream_offer *next;
	uint64_t thread;         /* as hal_host.caller numbers it */
	uint64_t address, bytes; /* bytes 0: no memory */
	void *stream;            /* NULL: none */
};

void stream_offers_init(struct stream_offers *o, const struct hal_host *host,
			const char *backend, uint32_t device)
{
	o->host = host;
	o->backend = backend;
	o->device = device;
	o->first = NULL;
	(void)pthread_mutex_init(&o->lock, NULL);
}

void stream_offers_fini(struct stream_offers *o)
{
	struct stream_offer *next, *offer;

	for (offer = o->first; offer; offer = next) {
		next = offer->next;
		free(offer);
	}
	o->first = NULL;
	pthread_mutex_destroy(&o->lock);
}

/* Return where the offer of the thread is in the list, or the list's end.  o->lock is
 * held. */
static struct stream_offer **find(struct stream_offers *o)
{
	const uint64_t thread = o->host->caller();
	struct stream_offer **at = &o->first;

	while (*at && (*at)->thread != thread)
		at = &(*at)->next;
	return at;
}

/* Return the offer of the thread, made if need be; NULL: no memory.  o->lock is held. */
static struct stream_offer *find_or_make(struct stream_offers *o)
{
	struct stream_offer **at = find(o);

	if (*at)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (*at)
		(*at)->thread = o->host->caller();
	else
		(void)(o->host->fail)(ENOMEM, "%s:%u: no memory for an offer", o->backend,
				      o->device);
	return *at;
}

/* Remove the offer at that place of the list if nothing is left of it.  o->lock is held.
 */
static void remove_empty(struct stream_offer **at)
{
	struct stream_offer *offer = *at;

	if (offer->bytes || offer->stream)
		return;
	*at = offer->next;
	free(offer);
}

int stream_offer_memory(struct stream_offers *o, uint64_t address, uint64_t bytes)
{
	struct stream_offer *offer;
	int err = 0;

	if (!bytes) {
		stream_took_memory(o);
		return 0;
	}
	pthread_mutex_lock(&o->lock);
	offer = find_or_make(o);
	if (!offer) {
		err = -ENOMEM;
	} else if (offer->bytes) {
		err = (o->host->fail)(EBUSY,
				      "%s:%u: this thread has offered the memory at "
				      "0x%" PRIx64
				      ", but has not created a buffer from it yet",
				      o->backend, o->device, offer->address);
	} else {
		offer->address = address;
		offer->bytes = bytes;
	}
	pthread_mutex_unlock(&o->lock);
	return err;
}

int stream_offer_stream(struct stream_offers *o, void *stream)
{
	struct stream_offer *offer;
	int err = 0;

	if (!stream) {
		stream_took_stream(o);
		return 0;
	}
	pthread_mutex_lock(&o->lock);
	offer = find_or_make(o);
	if (!offer)
		err = -ENOMEM;
	else if (offer->stream)
		err = (o->host->fail)(EBUSY,
				      "%s:%u: this thread has offered a stream, but has "
				      "not created a queue from it yet",
				      o->backend, o->device);
	else
		offer->stream = stream;
	pthread_mutex_unlock(&o->lock);
	return err;
}

bool stream_offered_memory(struct stream_offers *o, uint64_t bytes, uint64_t *address)
{
	const struct stream_offer *offer;
	bool is;

	pthread_mutex_lock(&o->lock);
	offer = *find(o);
	is = offer && bytes && offer->bytes == bytes;
	if (is)
		*address = offer->address;
	pthread_mutex_unlock(&o->lock);
	return is;
}

void *stream_offered_stream(struct stream_offers *o)
{
	const struct stream_offer *offer;
	void *stream;

	pthread_mutex_lock(&o->lock);
	offer = *find(o);
	stream = offer ? offer->stream : NULL;
	pthread_mutex_unlock(&o->lock);
	return stream;
}

void stream_took_memory(struct stream_offers *o)
{
	struct stream_offer **at;

	pthread_mutex_lock(&o->lock);
	at = find(o);
	if (*at) {
		(*at)->bytes = 0;
		remove_empty(at);
	}
	pthread_mutex_unlock(&o->lock);
}

void stream_took_stream(struct stream_offers *o)
{
	struct stream_offer **at;

	pthread_mutex_lock(&o->lock);
	at = find(o);
	if (*at) {
		(*at)->stream = NULL;
		remove_empty(at);
	}
	pthread_mutex_unlock(&o->lock);
}
