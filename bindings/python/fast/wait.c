/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - points and timelines: wait for them and read them. */
#include "fast.h"

#include <errno.h>
#include <time.h>

/* As SLICE_NS of _objects.py: how long a wait delays the handler of a signal. */
#define SLICE_NS INT64_C(200000000)

Py_ssize_t read_points(const struct module *m, PyObject *o,
		       struct hal_point to[POINTS_MAX])
{
	Py_ssize_t count = length_of(o);

	if (count > POINTS_MAX)
		return -1;
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *point = item_of(o, i);

		if (!is_a(point, m->Point) || PyTuple_Size(point) != 2 ||
		    !read_number(PyTuple_GetItem(point, 1), UINT64_MAX, &to[i].value))
			return -1;
		to[i].timeline = open_pointer(m, PyTuple_GetItem(point, 0), m->Timeline);
		if (to[i].timeline == NULL)
			return -1;
	}
	return count;
}

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Store the end of a wait, as hal_wait takes it, in *until.  Return false if timeout is
 * neither None nor a number from 0 on. */
static bool read_timeout(PyObject *timeout, int64_t *until)
{
	double seconds;
	int64_t now;

	*until = HAL_FOREVER;
	if (timeout == Py_None)
		return true;
	if (!PyFloat_CheckExact(timeout) && !PyLong_CheckExact(timeout))
		return false;
	seconds = PyFloat_AsDouble(timeout);
	if (PyErr_Occurred() != NULL)
		PyErr_Clear();
	if (!(seconds >= 0))
		return false;
	*until = 0;
	if (seconds == 0)
		return true;
	now = now_ns();
	*until = now + (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
	return true;
}

/* Return 1 if the device of a timeline has a virtual clock, 0 if not, or -1 with an
 * exception set. */
static int has_virtual_clock(const struct module *m, PyObject *o)
{
	PyObject *answer;
	int is;

	while (PyObject_TypeCheck(o, m->Handle)) {
		PyObject *parent = ((struct handle *)o)->parent;

		if (parent == NULL || parent == Py_None)
			break;
		o = parent;
	}
	answer = PyObject_GetAttr(o, m->str_virtual);
	if (answer == NULL)
		return -1;
	is = PyObject_IsTrue(answer);
	Py_DECREF(answer);
	return is;
}

/* Wait with hal_wait while other threads run.  On a real clock run the handlers of
 * signals now and then.  On a virtual clock a wait is work, and may look at the host's
 * clock at every step if it has an end.  Store hal_wait's answer; return false with an
 * exception set if a handler raised one. */
static bool wait_patiently(const struct module *m, const struct hal_point *points,
			   uint32_t count, uint32_t flags, int64_t until, bool in_slices,
			   int *answer)
{
	for (;;) {
		int64_t end = until, slice = 0;

		if (in_slices && until != 0) {
			slice = now_ns() + SLICE_NS;
			end = slice < until ? slice : until;
		}
		Py_BEGIN_ALLOW_THREADS;
		*answer = m->hal_wait(points, count, flags, end);
		Py_END_ALLOW_THREADS;
		if (end == until || *answer != -ETIMEDOUT)
			return true;
		if (PyErr_CheckSignals() != 0)
			return false;
	}
}

/* wait(points, flags, timeout, until_ns, device_ns): hal_wait's answer. */
PyObject *fast_wait(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const struct module *m = module_of(self);
	struct hal_point points[POINTS_MAX];
	PyObject *lines[POINTS_MAX], *result = NULL;
	uint64_t flags = 0;
	int64_t until = 0;
	Py_ssize_t n;
	int is_virtual, answer = 0;

	if (!check_call(m, count, 5))
		return NULL;
	n = read_points(m, args[0], points);
	if (n <= 0 || args[3] != Py_None || args[4] != Py_None ||
	    !read_number(args[1], UINT32_MAX, &flags) || !read_timeout(args[2], &until))
		return call_fallback(m->wait, args, count);
	/* Another thread may change a list of points meanwhile. */
	for (Py_ssize_t i = 0; i < n; i++)
		lines[i] = Py_NewRef(PyTuple_GetItem(item_of(args[0], i), 0));
	is_virtual = has_virtual_clock(m, lines[0]);
	if (is_virtual >= 0 && wait_patiently(m, points, (uint32_t)n, (uint32_t)flags,
					      until, is_virtual == 0, &answer))
		result = answer < 0 ? raise_failure(m, answer) : PyLong_FromLong(answer);
	for (Py_ssize_t i = 0; i < n; i++)
		Py_DECREF(lines[i]);
	return result;
}

/* reached(point): whether it is reached. */
PyObject *fast_reached(PyObject *self, PyObject *point)
{
	const struct module *m = module_of(self);
	struct hal_point p = {0};
	int answer;

	if (!check_call(m, 1, 1))
		return NULL;
	if (!is_a(point, m->Point) || PyTuple_Size(point) != 2 ||
	    !read_number(PyTuple_GetItem(point, 1), UINT64_MAX, &p.value))
		return call_fallback(m->reached, &point, 1);
	p.timeline = open_pointer(m, PyTuple_GetItem(point, 0), m->Timeline);
	if (p.timeline == NULL)
		return call_fallback(m->reached, &point, 1);
	Py_BEGIN_ALLOW_THREADS;
	answer = m->hal_wait(&p, 1, 0, 0);
	Py_END_ALLOW_THREADS;
	if (answer < 0 && answer != -ETIMEDOUT)
		return raise_failure(m, answer);
	return PyBool_FromLong(answer == 0);
}

/* value(timeline): where its counter is. */
PyObject *fast_value(PyObject *self, PyObject *timeline)
{
	const struct module *m = module_of(self);
	const struct hal_timeline *line;

	if (!check_call(m, 1, 1))
		return NULL;
	line = open_pointer(m, timeline, m->Timeline);
	if (line == NULL)
		return call_fallback(m->value, &timeline, 1);
	return PyLong_FromUnsignedLongLong(m->hal_timeline_get_value(line, NULL));
}
