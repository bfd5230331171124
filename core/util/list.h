/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - intrusive circular doubly linked lists.  The head is a node without contents.
 */
#ifndef HAL_UTIL_LIST_H
#define HAL_UTIL_LIST_H

#include <stdbool.h>

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Insert node before l.  If l is the head of the list, this appends node. */
static inline void list_add_before(struct list *l, struct list *node)
{
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}

/* Remove node from its list, and leave its own links undefined. */
static inline void list_take(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* Remove node from its list, if it is in one, and make it an empty list. */
static inline void list_del(struct list *node)
{
	list_take(node);
	list_init(node);
}

/* Iterate over the nodes of a list.  The body may remove node `it`. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `it` is a name to declare */
#define hal_list_for_each(it, head)                                                      \
	for (struct list *it = (head)->next, *it##_next = it->next; it != (head);        \
	     it = it##_next, it##_next = it->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
