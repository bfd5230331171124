/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - a hash table of the handles that layers know.  The entry of a destroyed
 * object stays, so that its handle can be distinguished from one of another device. */
#include "layers/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

#define SLOTS_FIRST 64u

int handles_init(struct handles *t, size_t bytes)
{
	memset(t, 0, sizeof(*t));
	t->bytes = bytes;
	t->slots = calloc(SLOTS_FIRST, sizeof(void *));
	if (t->slots == NULL)
		return -ENOMEM;
	t->slot_count = SLOTS_FIRST;
	return 0;
}

void handles_fini(struct handles *t)
{
	for (uint32_t i = 0; i < t->slot_count; i++) {
		while (t->slots[i] != NULL) {
			struct handle *next = t->slots[i]->next;

			free(t->slots[i]);
			t->slots[i] = next;
		}
	}
	free(t->slots);
	free(t->spare);
	memset(t, 0, sizeof(*t));
}

/* Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4. */
static uint32_t handle_slot(uint32_t kind, uint64_t key, uint32_t slot_count)
{
	uint64_t h = (key + kind) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) & (slot_count - 1);
}

struct handle *handles_find(const struct handles *t, uint32_t kind, uint64_t key)
{
	struct handle *h = t->slots[handle_slot(kind, key, t->slot_count)];

	while (h != NULL && (h->key != key || h->kind != kind))
		h = h->next;
	return h;
}

/* Double the number of slots.  Without memory for that, chains only become longer. */
static void grow(struct handles *t)
{
	uint32_t slot_count = t->slot_count * 2;
	struct handle **slots = calloc(slot_count, sizeof(void *));

	if (slots == NULL)
		return;
	for (uint32_t i = 0; i < t->slot_count; i++) {
		while (t->slots[i] != NULL) {
			struct handle *h = t->slots[i];
			uint32_t at = handle_slot(h->kind, h->key, slot_count);

			t->slots[i] = h->next;
			h->next = slots[at];
			slots[at] = h;
		}
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = slot_count;
}

int handles_reserve(struct handles *t)
{
	if (t->spare == NULL)
		t->spare = malloc(t->bytes);
	return t->spare != NULL ? 0 : -ENOMEM;
}

struct handle *handles_add(struct handles *t, uint32_t kind, uint64_t key)
{
	struct handle *h = handles_find(t, kind, key);
	struct handle *next;

	if (h == NULL) {
		uint32_t at;

		if (t->count >= t->slot_count)
			grow(t);
		if (handles_reserve(t) != 0)
			return NULL;
		h = t->spare;
		t->spare = NULL;
		at = handle_slot(kind, key, t->slot_count);
		h->next = t->slots[at];
		t->slots[at] = h;
		t->count++;
	}
	/* A backend may reuse the address of a destroyed object for a new one. */
	next = h->next;
	memset(h, 0, t->bytes);
	h->next = next;
	h->key = key;
	h->kind = kind;
	h->id = t->next_id[kind]++;
	h->alive = true;
	return h;
}
