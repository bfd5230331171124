/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - intrusive priority queues: lowest key first, equal keys in order of insertion.
 *
 * A heap consists of a sorted list and a pairing heap (Fredman, Sedgewick, Sleator,
 * Tarjan 1986).  A node whose key is not below the last one of the list is appended to
 * the list: adding and taking it are O(1).  Other nodes go to the pairing heap, whose
 * removals take O(log n) amortized.
 */
#ifndef HAL_UTIL_HEAP_H
#define HAL_UTIL_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;   /* set by the caller before heap_add */
	uint64_t order; /* number of the insertion; decides between equal keys */
	/* In the pairing heap: first child, next sibling, and parent or previous sibling.
	 * In the list: .child points to the node itself. */
	struct heap_node *child, *next, *prev;
};

struct heap {
	struct heap_node *root;         /* root of the pairing heap */
	struct heap_node *first, *last; /* ends of the list */
	uint64_t order;                 /* .order of the next node that is added */
};

static inline bool heap_empty(const struct heap *h)
{
	return h->root == NULL && h->first == NULL;
}

static inline bool heap_before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* Return the node with the lowest key; NULL if h is empty. */
static inline struct heap_node *heap_first(const struct heap *h)
{
	if (h->root == NULL)
		return h->first;
	return h->first != NULL && heap_before(h->first, h->root) ? h->first : h->root;
}

/* Add n to the pairing heap of h.  The caller has set n->key and n->order. */
void heap_add_out_of_order(struct heap *h, struct heap_node *n);
/* Remove n, which may be anywhere in h. */
void heap_remove(struct heap *h, struct heap_node *n);

/* Add n to h.  The caller has set n->key. */
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

/* Add n, which was removed from h, at its former place.  n->key and n->order must be
 * unchanged. */
static inline void heap_put_back(struct heap *h, struct heap_node *n)
{
	heap_add_out_of_order(h, n);
}

/* Remove n, which heap_first has returned. */
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
