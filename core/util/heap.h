/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - intrusive ordered sets: the lowest key first, equal ones in order of coming.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) beside a list: what comes in
 * ascending order goes to the list's end and costs nothing more, anything else into the
 * heap, at a logarithm when it is taken out.
 */
#ifndef HAL_UTIL_HEAP_H
#define HAL_UTIL_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key, order;
	/* In the heap: first child, next sibling, and parent or previous sibling.  In the
	 * list: child is the node itself. */
	struct heap_node *child, *next, *prev;
};

struct heap {
	struct heap_node *root;
	struct heap_node *first, *last; /* of the list */
	uint64_t order;
};

static inline bool heap_empty(const struct heap *h)
{
	return h->root == NULL && h->first == NULL;
}

static inline bool heap_before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* The lowest; NULL: it is empty. */
static inline struct heap_node *heap_first(const struct heap *h)
{
	if (h->root == NULL)
		return h->first;
	return h->first != NULL && heap_before(h->first, h->root) ? h->first : h->root;
}

void heap_add_out_of_order(struct heap *h, struct heap_node *n);
void heap_remove(struct heap *h, struct heap_node *n);

/* n->key is set. */
static inline void heap_add(struct heap *h, struct heap_node *n)
{
	struct heap_node *last = h->last;

	n->order = h->order++;
	if (last != NULL && n->key < last->key) {
		heap_add_out_of_order(h, n);
		return;
	}
	n->child = n;
	n->next = NULL;
	n->prev = last;
	if (last != NULL)
		last->next = n;
	else
		h->first = n;
	h->last = n;
}

/* n was taken out: it comes to where it was, .key and .order as they were. */
static inline void heap_put_back(struct heap *h, struct heap_node *n)
{
	heap_add_out_of_order(h, n);
}

/* Takes the lowest, which heap_first() has given, out. */
static inline void heap_take(struct heap *h, struct heap_node *n)
{
	if (n != h->first) {
		heap_remove(h, n);
		return;
	}
	h->first = n->next;
	if (n->next != NULL)
		n->next->prev = NULL;
	else
		h->last = NULL;
}

#endif
