/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.h - the extension module accelhal._fast: the calls of the Python package that a
 * program makes for each piece of work, in C.
 *
 * Each function takes the arguments of a Python function of the package, its fallback. It
 * handles the common arguments itself.  It passes all others, and all wrong ones, to the
 * fallback before it has had any effect.  So the fallback decides what is an error and
 * how it reads, and a program cannot tell which of the two ran.
 *
 * The module keeps to the stable ABI: one binary serves CPython 3.11 and later.
 */
#ifndef ACCELHAL_FAST_H
#define ACCELHAL_FAST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include <hal/hal.h>

struct module {
	bool bound;
	int (*hal_submit)(struct hal_queue *, const struct hal_submit_desc *,
			  struct hal_point *);
	int (*hal_sequence_submit)(struct hal_queue *, struct hal_sequence *,
				   const struct hal_submit_desc *, struct hal_point *);
	int (*hal_wait)(const struct hal_point *, uint32_t, uint32_t, int64_t);
	uint64_t (*hal_timeline_get_value)(const struct hal_timeline *, int *);
	uint64_t (*hal_buffer_get_bytes)(const struct hal_buffer *);
	PyTypeObject *Handle;
	newfunc new_tuple; /* of tuple itself */
	PyObject *str_uses, *str_calls, *str_append, *str_popleft, *str_virtual;
	/* Classes and functions of the package, under their own names. */
	PyObject *Buffer, *Command, *HostMemory, *Kernel, *Point, *Queue, *Range,
		*Sequence, *Timeline;
	PyObject *failure, *submit, *wait, *reached, *value, *launch, *fill, *copied,
		*plain;
};

/* Base of the package's classes that stand for an object of the library. */
struct handle {
	PyObject_HEAD PyObject
		*handle;  /* the library's pointer as an int; NULL or None: closed */
	PyObject *parent; /* the handle that it was made from; NULL or None: no other */
	PyObject *line;   /* of a queue: weak reference to its own Timeline */
	PyObject *held;   /* of a queue: deque of (value, what lives until then) */
	unsigned long long submitted; /* of a queue: value of its last submission */
};

/* ---- module.c ---------------------------------------------------------------------- */

static inline struct module *module_of(PyObject *self)
{
	return PyModule_GetState(self);
}

/* Return whether o is exactly of a class of the package. */
static inline bool is_a(PyObject *o, PyObject *class)
{
	return Py_TYPE(o) == (PyTypeObject *)class;
}

/* Return the library's pointer of o, which is a Handle, or NULL if o or its parent is
 * closed.  Sets no exception. */
void *pointer_of(const struct module *m, PyObject *o);

/* Return the library's pointer of o if o is exactly of that class and open, else NULL.
 * Sets no exception. */
static inline void *open_pointer(const struct module *m, PyObject *o, PyObject *class)
{
	return is_a(o, class) ? pointer_of(m, o) : NULL;
}

/* The same for a Buffer or HostMemory. */
static inline struct hal_buffer *buffer_pointer(const struct module *m, PyObject *o)
{
	return is_a(o, m->Buffer) || is_a(o, m->HostMemory) ? pointer_of(m, o) : NULL;
}

/* Store o in *to and return true if o is an int from 0 to max.  Sets no exception. */
bool read_number(PyObject *o, uint64_t max, uint64_t *to);

/* Return item i of o, a list or tuple: a borrowed reference. */
static inline PyObject *item_of(PyObject *o, Py_ssize_t i)
{
	return PyList_CheckExact(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
}

/* Return the length of o, or -1 if o is neither a list nor a tuple. */
static inline Py_ssize_t length_of(PyObject *o)
{
	if (PyList_CheckExact(o))
		return PyList_Size(o);
	return PyTuple_CheckExact(o) ? PyTuple_Size(o) : -1;
}

/* Return what fallback answers to these arguments. */
PyObject *call_fallback(PyObject *fallback, PyObject *const *args, Py_ssize_t count);

/* Raise the exception for an answer of the library; return NULL. */
PyObject *raise_failure(const struct module *m, int answer);

/* Check that bind() has been called and that count is as wanted.  Return false with an
 * exception set if not. */
bool check_call(const struct module *m, Py_ssize_t count, Py_ssize_t wanted);

/* ---- wait.c ------------------------------------------------------------------------ */

/* Most points that the module handles itself, for each of waits, signals and wait(). */
#define POINTS_MAX 16

/* Store the points of o, a list or tuple of Points with open timelines, in to.  Return
 * their number, or -1 if o is anything else or longer.  Sets no exception. */
Py_ssize_t read_points(const struct module *m, PyObject *o,
		       struct hal_point to[POINTS_MAX]);

PyObject *fast_wait(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fast_reached(PyObject *self, PyObject *point);
PyObject *fast_value(PyObject *self, PyObject *timeline);

/* ---- submit.c, commands.c ---------------------------------------------------------- */

PyObject *fast_submit(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fast_launch(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fast_fill(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fast_copied(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fast_plain(PyObject *self, PyObject *op);

#endif
