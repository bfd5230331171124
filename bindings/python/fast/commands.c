/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - make Commands: launch, fill, copies, and those without arguments. */
#include "fast.h"

#include <string.h>

/* Return a Command that is raw.  uses: its buffers and kernels.  calls: NULL, or the
 * memory that raw refers to. */
static PyObject *command_of(const struct module *m, const struct hal_cmd *raw,
			    PyObject *uses, PyObject *calls)
{
	PyObject *command = PyObject_CallNoArgs(m->Command);
	Py_buffer view;

	if (command == NULL)
		return NULL;
	if (PyObject_GetBuffer(command, &view, PyBUF_WRITABLE) != 0)
		goto failed;
	if (view.len == (Py_ssize_t)sizeof(*raw))
		memcpy(view.buf, raw, sizeof(*raw));
	PyBuffer_Release(&view);
	if (uses != NULL && PyObject_SetAttr(command, m->str_uses, uses) != 0)
		goto failed;
	if (calls != NULL && PyObject_SetAttr(command, m->str_calls, calls) != 0)
		goto failed;
	return command;
failed:
	Py_DECREF(command);
	return NULL;
}

/* Store the size of buffer from offset on in *bytes if o is None, else the number o. */
static bool read_bytes(const struct module *m, PyObject *o,
		       const struct hal_buffer *buffer, uint64_t offset, uint64_t *bytes)
{
	uint64_t all;

	if (o != Py_None)
		return read_number(o, UINT64_MAX, bytes);
	all = m->hal_buffer_get_bytes(buffer);
	*bytes = all > offset ? all - offset : 0;
	return true;
}

/* plain(op): a command without arguments. */
PyObject *fast_plain(PyObject *self, PyObject *op)
{
	const struct module *m = module_of(self);
	struct hal_cmd raw;
	uint64_t number;

	if (!check_call(m, 1, 1))
		return NULL;
	if (!read_number(op, UINT32_MAX, &number))
		return call_fallback(m->plain, &op, 1);
	raw = hal_cmd_of((uint32_t)number, 0);
	return command_of(m, &raw, NULL, NULL);
}

/* fill(dst, pattern, offset, bytes) */
PyObject *fast_fill(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const struct module *m = module_of(self);
	struct hal_buffer *dst;
	struct hal_cmd raw;
	uint64_t pattern, offset, bytes;
	PyObject *uses, *command;

	if (!check_call(m, count, 4))
		return NULL;
	dst = buffer_pointer(m, args[0]);
	if (dst == NULL || !read_number(args[1], UINT32_MAX, &pattern) ||
	    !read_number(args[2], UINT64_MAX, &offset) ||
	    !read_bytes(m, args[3], dst, offset, &bytes))
		return call_fallback(m->fill, args, count);
	raw = hal_cmd_fill(dst, offset, bytes, (uint32_t)pattern);
	uses = PyTuple_Pack(1, args[0]);
	if (uses == NULL)
		return NULL;
	command = command_of(m, &raw, uses, NULL);
	Py_DECREF(uses);
	return command;
}

/* copied(make, dst, dst_offset, src, src_offset, bytes): make is the function of hal.h,
 * for the fallback: hal_cmd_write and hal_cmd_read make what hal_cmd_copy makes. */
PyObject *fast_copied(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const struct module *m = module_of(self);
	struct hal_buffer *dst, *src;
	struct hal_cmd raw;
	uint64_t dst_offset, src_offset, bytes;
	PyObject *uses, *command;

	if (!check_call(m, count, 6))
		return NULL;
	dst = buffer_pointer(m, args[1]);
	src = buffer_pointer(m, args[3]);
	if (dst == NULL || src == NULL ||
	    !read_number(args[2], UINT64_MAX, &dst_offset) ||
	    !read_number(args[4], UINT64_MAX, &src_offset) ||
	    !read_bytes(m, args[5], src, src_offset, &bytes))
		return call_fallback(m->copied, args, count);
	raw = hal_cmd_copy(dst, dst_offset, src, src_offset, bytes);
	uses = PyTuple_Pack(2, args[1], args[3]);
	if (uses == NULL)
		return NULL;
	command = command_of(m, &raw, uses, NULL);
	Py_DECREF(uses);
	return command;
}

/* ---- launches ---------------------------------------------------------------------- */

/* Store a launch argument in *to, and the Buffer that it is in, borrowed, in *buffer:
 * NULL for a scalar.  Return false, without an exception, if it is anything else. */
static bool read_argument(const struct module *m, PyObject *o, struct hal_arg *to,
			  PyObject **buffer)
{
	*to = (struct hal_arg){0};
	*buffer = NULL;
	if (PyLong_CheckExact(o))
		return read_number(o, UINT64_MAX, &to->offset);
	*buffer = o;
	if (is_a(o, m->Range)) {
		if (PyTuple_Size(o) != 3 ||
		    !read_number(PyTuple_GetItem(o, 1), UINT64_MAX, &to->offset) ||
		    !read_number(PyTuple_GetItem(o, 2), UINT64_MAX, &to->bytes))
			return false;
		*buffer = PyTuple_GetItem(o, 0);
	}
	to->buffer = buffer_pointer(m, *buffer);
	return to->buffer != NULL;
}

/* Read up to three numbers of a tuple. */
static bool read_three(PyObject *o, uint32_t to[3])
{
	Py_ssize_t count = PyTuple_CheckExact(o) ? PyTuple_Size(o) : -1;
	uint64_t number;

	if (count > 3)
		return false;
	for (Py_ssize_t i = 0; i < count; i++) {
		if (!read_number(PyTuple_GetItem(o, i), UINT32_MAX, &number))
			return false;
		to[i] = (uint32_t)number;
	}
	return count >= 0;
}

/* Return the Command of a launch.  raw: all of it but the address of its arguments, which
 * are copied to memory that lives as long as the Command.  buffers: of the arguments. */
static PyObject *launch_of(const struct module *m, struct hal_cmd *raw,
			   const struct hal_arg *all, PyObject *kernel,
			   PyObject *const *buffers, Py_ssize_t buffer_count)
{
	Py_ssize_t bytes = (Py_ssize_t)(raw->launch.arg_count * sizeof(*all));
	PyObject *memory = PyBytes_FromStringAndSize((const char *)all, bytes);
	PyObject *uses = PyTuple_New(1 + buffer_count), *command = NULL;

	if (memory != NULL && uses != NULL) {
		(void)PyTuple_SetItem(uses, 0, Py_NewRef(kernel));
		for (Py_ssize_t i = 0; i < buffer_count; i++)
			(void)PyTuple_SetItem(uses, 1 + i, Py_NewRef(buffers[i]));
		raw->launch.args = (const void *)PyBytes_AsString(memory);
		command = command_of(m, raw, uses, memory);
	}
	Py_XDECREF(memory);
	Py_XDECREF(uses);
	return command;
}

/* launch(kernel, args, groups, group_size, shared_bytes, replayable) */
PyObject *fast_launch(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const struct module *m = module_of(self);
	struct hal_arg all[HAL_ARGS_MAX];
	PyObject *buffers[HAL_ARGS_MAX];
	Py_ssize_t n, buffer_count = 0;
	struct hal_kernel *kernel;
	struct hal_cmd raw;
	uint64_t shared = 0;
	bool good;

	if (!check_call(m, count, 6))
		return NULL;
	kernel = open_pointer(m, args[0], m->Kernel);
	n = PyTuple_CheckExact(args[1]) ? PyTuple_Size(args[1]) : -1;
	good = kernel != NULL && n >= 0 && n <= HAL_ARGS_MAX && PyBool_Check(args[5]);
	for (Py_ssize_t i = 0; good && i < n; i++) {
		good = read_argument(m, PyTuple_GetItem(args[1], i), &all[i],
				     &buffers[buffer_count]);
		if (good && buffers[buffer_count] != NULL)
			buffer_count++;
	}
	if (good) {
		raw = hal_cmd_launch(kernel, NULL, (uint32_t)n);
		good = read_three(args[2], raw.launch.groups) &&
		       read_three(args[3], raw.launch.group_size) &&
		       read_number(args[4], UINT32_MAX, &shared);
	}
	if (!good)
		return call_fallback(m->launch, args, count);
	raw.launch.shared_bytes = (uint32_t)shared;
	if (args[5] == Py_True)
		raw.flags |= HAL_CMD_REPLAYABLE;
	return launch_of(m, &raw, all, args[0], buffers, buffer_count);
}
