/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - the pairing heap of heap.h, for nodes that are added out of order. */
#include "util/heap.h"

/* Join two heaps, given by their roots; return the new root. */
static struct heap_node *meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *t;

	if (a == NULL)
		return b;
	if (b == NULL)
		return a;
	if (heap_before(b, a)) {
		t = a;
		a = b;
		b = t;
	}
	b->next = a->child;
	if (a->child != NULL)
		a->child->prev = b;
	b->prev = a;
	a->child = b;
	return a;
}

/* Join n and its next siblings into one heap; return its root.  Meld them in pairs from
 * left to right, then meld the results from right to left. */
static struct heap_node *pair(struct heap_node *n)
{
	struct heap_node *done = NULL, *root = NULL;

	while (n != NULL) {
		struct heap_node *a = n, *b = n->next;

		n = b != NULL ? b->next : NULL;
		a->next = NULL;
		if (b != NULL)
			b->next = NULL;
		a = meld(a, b);
		a->prev = done; /* .prev links the results into a stack */
		done = a;
	}
	while (done != NULL) {
		struct heap_node *before = done->prev;

		root = meld(root, done);
		done = before;
	}
	return root;
}

static void set_root(struct heap *h, struct heap_node *root)
{
	h->root = root;
	if (root != NULL) {
		root->next = NULL;
		root->prev = NULL;
	}
}

void heap_add_out_of_order(struct heap *h, struct heap_node *n)
{
	n->child = NULL;
	n->next = NULL;
	n->prev = NULL;
	set_root(h, meld(h->root, n));
}

void heap_remove(struct heap *h, struct heap_node *n)
{
	struct heap_node *rest;

	if (n->child == n) { /* n is in the list */
		if (n->prev != NULL)
			n->prev->next = n->next;
		else
			h->first = n->next;
		if (n->next != NULL)
			n->next->prev = n->prev;
		else
			h->last = n->prev;
		return;
	}
	rest = pair(n->child);
	if (n == h->root) {
		set_root(h, rest);
		return;
	}
	/* Remove n from the children of its parent. */
	if (n->prev->child == n)
		n->prev->child = n->next;
	else
		n->prev->next = n->next;
	if (n->next != NULL)
		n->next->prev = n->prev;
	if (rest != NULL) {
		rest->next = NULL;
		rest->prev = NULL;
	}
	set_root(h, meld(h->root, rest));
}
