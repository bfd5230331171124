/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - Queue.submit.
 *
 * The library takes no lock in a submission and does not wait, so this thread keeps the
 * GIL.  If it released the GIL, it might wait for a switch interval (5 ms by default)
 * until a thread that computes in Python gives the GIL back.
 */
#include "fast.h"

#include <string.h>

#define FEW_COMMANDS 8

/* The arguments of submit(), in their order. */
enum {
	QUEUE,
	WORK,
	WAITS,
	SIGNALS,
	NOT_BEFORE_NS,
	DEADLINE_NS,
	PRIORITY,
	TAG,
	ARGUMENTS
};

struct submission {
	struct hal_queue *queue;
	struct hal_sequence *sequence; /* or NULL: desc.cmds */
	struct hal_submit_desc desc;
	struct hal_point waits[POINTS_MAX], signals[POINTS_MAX];
	struct hal_cmd few[FEW_COMMANDS], *many; /* many: NULL, or all if they are more */
	PyObject *held; /* NULL, or a list of what must live until the submission ends */
};

static void submission_free(struct submission *s)
{
	PyMem_Free(s->many);
	Py_XDECREF(s->held);
}

/* Add o to what must live.  Return false, without an exception, if memory is short. */
static bool hold(struct submission *s, PyObject *o)
{
	if (s->held == NULL)
		s->held = PyList_New(0);
	if (s->held != NULL && PyList_Append(s->held, o) == 0)
		return true;
	PyErr_Clear();
	return false;
}

/* Return whether nothing that a command uses has been closed.  uses: its attribute. */
static bool uses_open(const struct module *m, PyObject *uses)
{
	Py_ssize_t count = PyTuple_CheckExact(uses) ? PyTuple_Size(uses) : -1;

	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *thing = PyTuple_GetItem(uses, i);

		if (buffer_pointer(m, thing) == NULL &&
		    open_pointer(m, thing, m->Kernel) == NULL)
			return false;
	}
	return count >= 0;
}

/* Copy what the ctypes structure o holds to *to.  Return false, without an exception, if
 * that fails. */
static bool read_structure(PyObject *o, struct hal_cmd *to)
{
	Py_buffer view;
	bool whole;

	if (PyObject_GetBuffer(o, &view, PyBUF_SIMPLE) != 0) {
		PyErr_Clear();
		return false;
	}
	whole = view.len == (Py_ssize_t)sizeof(*to);
	if (whole)
		memcpy(to, view.buf, sizeof(*to));
	PyBuffer_Release(&view);
	return whole;
}

/* Copy a Command to *to, and hold the function that it calls.  Return false, without an
 * exception, if o is no Command or uses something closed. */
static bool read_command(const struct module *m, struct submission *s, PyObject *o,
			 struct hal_cmd *to)
{
	PyObject *uses, *calls;
	bool good;

	if (!is_a(o, m->Command) || !read_structure(o, to))
		return false;
	uses = PyObject_GetAttr(o, m->str_uses);
	good = uses != NULL && uses_open(m, uses);
	Py_XDECREF(uses);
	if (good && to->op == HAL_OP_HOST) {
		calls = PyObject_GetAttr(o, m->str_calls);
		good = calls != NULL && hold(s, calls);
		Py_XDECREF(calls);
	}
	if (!good)
		PyErr_Clear();
	return good;
}

/* Read the commands of a list or tuple. */
static bool read_commands(const struct module *m, struct submission *s, PyObject *work)
{
	Py_ssize_t count = length_of(work);
	struct hal_cmd *to = s->few;

	if (count < 0 || count > HAL_COMMANDS_MAX)
		return false;
	if (count > FEW_COMMANDS) {
		s->many = PyMem_Malloc((size_t)count * sizeof(*s->many));
		to = s->many;
	}
	if (to == NULL)
		return false;
	for (Py_ssize_t i = 0; i < count; i++)
		/* Reading an attribute may run Python code, which may shorten a list. */
		if (i >= length_of(work) || !read_command(m, s, item_of(work, i), &to[i]))
			return false;
	s->desc.cmds = to;
	s->desc.cmd_count = (uint32_t)count;
	return true;
}

/* Hold the functions that a Sequence calls. */
static bool read_sequence(const struct module *m, struct submission *s, PyObject *work)
{
	PyObject *calls = PyObject_GetAttr(work, m->str_calls);
	bool good = calls != NULL && PyList_CheckExact(calls);

	s->sequence = pointer_of(m, work);
	good = good && s->sequence != NULL && (PyList_Size(calls) == 0 || hold(s, calls));
	Py_XDECREF(calls);
	if (!good)
		PyErr_Clear();
	return good;
}

static bool read_work(const struct module *m, struct submission *s, PyObject *work)
{
	if (is_a(work, m->Sequence))
		return read_sequence(m, s, work);
	if (!is_a(work, m->Command))
		return read_commands(m, s, work);
	s->desc.cmds = s->few;
	s->desc.cmd_count = 1;
	return read_command(m, s, work, s->few);
}

/* Read waits or signals, and hold their timelines. */
static bool read_held_points(const struct module *m, struct submission *s, PyObject *o,
			     struct hal_point *to, uint32_t *count)
{
	Py_ssize_t n = read_points(m, o, to);

	for (Py_ssize_t i = 0; i < n; i++)
		if (!hold(s, PyTuple_GetItem(item_of(o, i), 0)))
			return false;
	*count = n > 0 ? (uint32_t)n : 0;
	return n >= 0;
}

static bool read_priority(PyObject *o, struct hal_submit_desc *to)
{
	long value;
	int overflow;

	if (o == Py_None)
		return true;
	if (!PyLong_CheckExact(o))
		return false;
	value = PyLong_AsLongAndOverflow(o, &overflow);
	if (overflow != 0 || value < INT32_MIN || value > INT32_MAX)
		return false;
	to->priority = (int32_t)value;
	to->flags |= HAL_SUBMIT_PRIORITY;
	return true;
}

/* Read all arguments into s.  Return false, without an exception, if the fallback must
 * have them. */
static bool read_arguments(const struct module *m, struct submission *s,
			   PyObject *const *args)
{
	struct hal_submit_desc *d = &s->desc;

	s->queue = open_pointer(m, args[QUEUE], m->Queue);
	return s->queue != NULL && read_work(m, s, args[WORK]) &&
	       read_held_points(m, s, args[WAITS], s->waits, &d->wait_count) &&
	       read_held_points(m, s, args[SIGNALS], s->signals, &d->signal_count) &&
	       read_number(args[NOT_BEFORE_NS], UINT64_MAX, &d->not_before_ns) &&
	       read_number(args[DEADLINE_NS], UINT64_MAX, &d->deadline_ns) &&
	       read_priority(args[PRIORITY], d) &&
	       read_number(args[TAG], UINT64_MAX, &d->tag);
}

/* Remove the entries of the queue's deque whose work has ended.  Return false with an
 * exception set if that fails. */
static bool release_ended(const struct module *m, PyObject *held,
			  const struct hal_timeline *line)
{
	uint64_t reached = m->hal_timeline_get_value(line, NULL), value;

	for (;;) {
		Py_ssize_t count = PySequence_Size(held);
		PyObject *first, *gone;
		bool ended;

		if (count <= 0)
			return count == 0;
		first = PySequence_GetItem(held, 0);
		if (first == NULL)
			return false;
		ended = PyTuple_CheckExact(first) && PyTuple_Size(first) == 2 &&
			read_number(PyTuple_GetItem(first, 0), reached, &value);
		Py_DECREF(first);
		if (!ended)
			return true;
		gone = PyObject_CallMethodObjArgs(held, m->str_popleft, NULL);
		if (gone == NULL)
			return false;
		Py_DECREF(gone);
	}
}

/* Keep things, which may be NULL, until the queue's timeline has reached value. */
static bool keep(const struct module *m, PyObject *held, PyObject *things,
		 const struct hal_point *done)
{
	PyObject *entry, *none;
	Py_ssize_t count;

	if (things != NULL) {
		entry = Py_BuildValue("(KO)", (unsigned long long)done->value, things);
		if (entry == NULL)
			return false;
		none = PyObject_CallMethodObjArgs(held, m->str_append, entry, NULL);
		Py_DECREF(entry);
		if (none == NULL)
			return false;
		Py_DECREF(none);
	}
	count = PySequence_Size(held);
	return count == 0 || (count > 0 && release_ended(m, held, done->timeline));
}

/* Return the Timeline of a queue, which has that pointer: the one that is in use, or a
 * new one.  A queue refers to it weakly, because it refers to the queue. */
static PyObject *line_of(const struct module *m, struct handle *queue,
			 struct hal_timeline *pointer)
{
	struct handle *line;
	PyObject *old = queue->line;

	if (old != NULL && old != Py_None) {
		PyObject *there = PyWeakref_GetObject(old);

		if (there == NULL)
			return NULL;
		if (there != Py_None)
			return Py_NewRef(there);
	}
	line = (struct handle *)PyType_GenericAlloc((PyTypeObject *)m->Timeline, 0);
	if (line == NULL)
		return NULL;
	line->handle = PyLong_FromVoidPtr(pointer);
	line->parent = Py_NewRef((PyObject *)queue);
	queue->line = PyWeakref_NewRef((PyObject *)line, NULL);
	Py_XDECREF(old);
	if (line->handle == NULL || queue->line == NULL) {
		Py_DECREF(line);
		return NULL;
	}
	return (PyObject *)line;
}

/* Return the Point of a submission to a queue. */
static PyObject *point_of(const struct module *m, struct handle *queue,
			  const struct hal_point *done)
{
	PyObject *line = line_of(m, queue, done->timeline), *value, *pair, *both, *point;

	if (line == NULL)
		return NULL;
	value = PyLong_FromUnsignedLongLong(done->value);
	pair = value == NULL ? NULL : PyTuple_Pack(2, line, value);
	Py_DECREF(line);
	Py_XDECREF(value);
	if (pair == NULL)
		return NULL;
	both = PyTuple_Pack(1, pair);
	Py_DECREF(pair);
	if (both == NULL)
		return NULL;
	/* Point.__new__ is written in Python, and does the same. */
	point = m->new_tuple((PyTypeObject *)m->Point, both, NULL);
	Py_DECREF(both);
	return point;
}

/* submit(queue, work, waits, signals, not_before_ns, deadline_ns, priority, tag): the
 * Point of its end. */
PyObject *fast_submit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const struct module *m = module_of(self);
	struct handle *queue;
	struct submission s;
	struct hal_point done;
	PyObject *point = NULL;
	int err;

	if (!check_call(m, count, ARGUMENTS))
		return NULL;
	s.sequence = NULL;
	s.many = NULL;
	s.held = NULL;
	s.desc = (struct hal_submit_desc){
		.size = sizeof(s.desc), .waits = s.waits, .signals = s.signals};
	if (!read_arguments(m, &s, args)) {
		submission_free(&s);
		return call_fallback(m->submit, args, count);
	}
	err = s.sequence == NULL
		      ? m->hal_submit(s.queue, &s.desc, &done)
		      : m->hal_sequence_submit(s.queue, s.sequence, &s.desc, &done);
	queue = (struct handle *)args[QUEUE];
	if (err != 0) {
		(void)raise_failure(m, err);
	} else {
		queue->submitted = done.value;
		if (queue->held == NULL || keep(m, queue->held, s.held, &done))
			point = point_of(m, queue, &done);
	}
	submission_free(&s);
	return point;
}
