/* SPDX-License-Identifier: Apache-2.0 */
/* decisions.c - record the latest scheduling decisions, and describe them in words. */
#include "sched/decisions.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

void decided_turn(struct hal_queue *q, enum decision_kind kind, uint64_t waited_ns)
{
	struct decisions *all = q->dev->observe.decisions;
	struct decision *d = &all->turns[all->turn_count++ % DECISIONS_KEPT];

	if (all->overruled)
		kind = DECIDED_OLDEST;
	all->overruled = false;
	*d = (struct decision){
		.at_ns = q->dev->now,
		.kind = kind,
		.queue = q->obj.id,
		.partition = q->part->desc.index,
		.n = {kind == DECIDED_KEY ? q->sched.order.key : 0,
		      q->part->sched.policy_view.runnable + 1, waited_ns,
		      q->sched.policy_view.service_class,
		      (uint32_t)q->sched.policy_view.head.priority,
		      q->sched.policy_view.head.deadline_ns},
	};
}

void decided_other(struct hal_device *dev, enum decision_kind kind,
		   const struct hal_partition *part, const struct hal_queue *q,
		   const char *text, const uint64_t *n, uint32_t count)
{
	struct decisions *all = dev->observe.decisions;
	struct decision *d = &all->others[all->other_count++ % DECISIONS_KEPT];

	if (part == NULL && q != NULL)
		part = q->part;
	*d = (struct decision){
		.at_ns = dev->now,
		.kind = kind,
		.queue = q != NULL ? q->obj.id : DECISION_NONE,
		.partition = part != NULL ? part->desc.index : DECISION_NONE,
		.text = text,
	};
	memcpy(d->n, n, count * sizeof(*n));
	all->overruled |= kind == DECIDED_OVERRULED;
}

/* ---- description in words ------------------------------------------------------- */

static const char *const classes[] = {"normal", "latency", "best effort"};
static const char *const modes[] = {"drain", "fold", "save", "kill"};

/* Append formatted words to text, a buffer of size bytes. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size,
						      const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + n, size - n, fmt, ap);
	va_end(ap);
}

/* Append the words in what, then the time ns in microseconds. */
static void add_ns(char *text, size_t size, const char *what, uint64_t ns)
{
	if (ns == HAL_POLICY_NEVER)
		add(text, size, "%s unlimited", what);
	else
		add(text, size, "%s %" PRIu64 ".%03" PRIu64 " us", what, ns / 1000,
		    ns % 1000);
}

/* Append the error with which a request was refused, if any. */
static void add_error(char *text, size_t size, uint64_t error)
{
	if (error != 0)
		add(text, size, "; refused: %s", hal_strerror(-(int)error));
}

static void turn_text(const struct decision *d, char *text, size_t size)
{
	if (d->kind == DECIDED_KEY)
		add(text, size, "is next: its key %" PRIu64 " is the lowest", d->n[0]);
	else if (d->kind == DECIDED_POLICY)
		add(text, size, "is next: the policy chose it");
	else
		add(text, size,
		    "is next: it became runnable first; the policy's choice is not used");
	add(text, size, "; runnable queues: %" PRIu64, d->n[1]);
	if (d->n[3] != HAL_CLASS_NORMAL && d->n[3] < ARRAY_LENGTH(classes))
		add(text, size, "; class %s", classes[d->n[3]]);
	add(text, size, "; priority %" PRId32, (int32_t)(uint32_t)d->n[4]);
	if (d->n[5] == HAL_POLICY_NEVER)
		add(text, size, "; no deadline");
	else if (d->n[5] >= d->at_ns)
		add_ns(text, size, "; deadline in", d->n[5] - d->at_ns);
	else
		add_ns(text, size, "; deadline missed by", d->at_ns - d->n[5]);
	add_ns(text, size, "; longest wait", d->n[2]);
}

static void way_text(const struct decision *d, char *text, size_t size)
{
	add(text, size, "is preempted for queue %" PRIu64 " by %s", d->n[1],
	    modes[d->n[0] & 3]);
	add_ns(text, size, ": expected wait", d->n[2]);
	add_ns(text, size, ", work lost", d->n[3]);
	if (d->n[4] == HAL_POLICY_NEVER)
		add(text, size, ", no deadline");
	else
		add_ns(text, size, ", slack before the deadline", d->n[4]);
}

void decision_text(const struct decision *d, char *text, size_t size)
{
	text[0] = '\0';
	if (d->queue != DECISION_NONE)
		add(text, size, "queue %" PRIu32 " ", d->queue);
	else if (d->partition != DECISION_NONE)
		add(text, size, "partition %" PRIu32 " ", d->partition);
	switch ((enum decision_kind)d->kind) {
	case DECIDED_KEY:
	case DECIDED_POLICY:
	case DECIDED_OLDEST:
		turn_text(d, text, size);
		break;
	case DECIDED_HOLD:
		if (d->n[0] == HAL_POLICY_NEVER)
			add(text, size,
			    "is held: the policy chose no queue until the next event");
		else
			add_ns(text, size, "is held: the policy chose no queue for",
			       d->n[0] > d->at_ns ? d->n[0] - d->at_ns : 0);
		add(text, size, "; runnable queues: %" PRIu64, d->n[1]);
		break;
	case DECIDED_OVERRULED:
		add(text, size, "is served against the policy's choice: %s", d->text);
		break;
	case DECIDED_FAULT:
		add(text, size, "policy fault: %s", d->text);
		break;
	case DECIDED_FALLBACK:
		add(text, size,
		    "queues are served in order of arrival, without the policy: %s",
		    d->text);
		break;
	case DECIDED_STOP:
		add(text, size, "is to be stopped by the policy, mode %s",
		    modes[d->n[0] & 3]);
		add_error(text, size, d->n[1]);
		break;
	case DECIDED_START:
		add(text, size, "is to be resumed by the policy");
		add_error(text, size, d->n[0]);
		break;
	case DECIDED_PREEMPT:
		way_text(d, text, size);
		break;
	case DECIDED_RESUME:
		add(text, size, "resumes: no urgent work outranks it any more");
		break;
	case DECIDED_UNITS:
		add(text, size, "has %" PRIu64 " units; the policy requests %" PRIu64,
		    d->n[0], d->n[1]);
		add_error(text, size, d->n[2]);
		break;
	case DECIDED_LIMIT:
		if (d->n[0] == 0) {
			add(text, size, "is not limited in bandwidth any more");
			add_error(text, size, d->n[2]);
			break;
		}
		add(text, size, "is limited to %" PRIu64 " bytes per", d->n[0]);
		add_ns(text, size, "", d->n[1]);
		add_error(text, size, d->n[2]);
		break;
	case DECIDED_INSTALL:
		add(text, size, "the policy is %s", d->text);
		break;
	}
}
