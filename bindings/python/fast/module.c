/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module itself: its state, the class Handle, and what its files share. */
#include "fast.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* A reference in struct module. */
struct member {
	const char *name;
	size_t at;
};

#define MEMBER(name)                                                                     \
	{                                                                                \
#name, offsetof(struct module, name)                                     \
	}

/* What bind() takes. */
static const struct member things[] = {
	MEMBER(Buffer),   MEMBER(Command), MEMBER(HostMemory), MEMBER(Kernel),
	MEMBER(Point),    MEMBER(Queue),   MEMBER(Range),      MEMBER(Sequence),
	MEMBER(Timeline), MEMBER(failure), MEMBER(submit),     MEMBER(wait),
	MEMBER(reached),  MEMBER(value),   MEMBER(launch),     MEMBER(fill),
	MEMBER(copied),   MEMBER(plain),
};

/* Names of attributes. */
static const struct member strings[] = {
	{"uses", offsetof(struct module, str_uses)},
	{"calls", offsetof(struct module, str_calls)},
	{"append", offsetof(struct module, str_append)},
	{"popleft", offsetof(struct module, str_popleft)},
	{"virtual", offsetof(struct module, str_virtual)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static PyObject **member_of(struct module *m, const struct member *which)
{
	return (PyObject **)((char *)m + which->at);
}

void *pointer_of(const struct module *m, PyObject *o)
{
	const struct handle *h = (struct handle *)o, *parent = (struct handle *)h->parent;
	void *pointer;

	if (h->handle == NULL || !PyLong_Check(h->handle))
		return NULL;
	if (parent != NULL && h->parent != Py_None &&
	    (!PyObject_TypeCheck(h->parent, m->Handle) || parent->handle == NULL ||
	     parent->handle == Py_None))
		return NULL;
	pointer = PyLong_AsVoidPtr(h->handle);
	if (pointer == NULL)
		PyErr_Clear();
	return pointer;
}

bool read_number(PyObject *o, uint64_t max, uint64_t *to)
{
	unsigned long long n;

	if (!PyLong_CheckExact(o))
		return false;
	n = PyLong_AsUnsignedLongLong(o);
	if (n == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
		PyErr_Clear();
		return false;
	}
	*to = n;
	return n <= max;
}

PyObject *call_fallback(PyObject *fallback, PyObject *const *args, Py_ssize_t count)
{
	PyObject *all = PyTuple_New(count), *result;

	if (all == NULL)
		return NULL;
	for (Py_ssize_t i = 0; i < count; i++)
		(void)PyTuple_SetItem(all, i, Py_NewRef(args[i]));
	result = PyObject_Call(fallback, all, NULL);
	Py_DECREF(all);
	return result;
}

PyObject *raise_failure(const struct module *m, int answer)
{
	PyObject *error = PyObject_CallFunction(m->failure, "i", answer);

	if (error != NULL) {
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
		Py_DECREF(error);
	}
	return NULL;
}

bool check_call(const struct module *m, Py_ssize_t count, Py_ssize_t wanted)
{
	if (!m->bound) {
		PyErr_SetString(PyExc_RuntimeError, "bind() has not been called");
		return false;
	}
	if (count != wanted) {
		PyErr_Format(PyExc_TypeError, "%zd arguments are needed, not %zd", wanted,
			     count);
		return false;
	}
	return true;
}

/* ---- Handle ------------------------------------------------------------------------ */

static int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
	const struct handle *h = (struct handle *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(h->handle);
	Py_VISIT(h->parent);
	Py_VISIT(h->line);
	Py_VISIT(h->held);
	return 0;
}

static int handle_clear(PyObject *self)
{
	struct handle *h = (struct handle *)self;

	Py_CLEAR(h->handle);
	Py_CLEAR(h->parent);
	Py_CLEAR(h->line);
	Py_CLEAR(h->held);
	return 0;
}

static void handle_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(self);
	(void)handle_clear(self);
	release(self);
	Py_DECREF(type);
}

static PyMemberDef handle_members[] = {
	{"_handle", T_OBJECT, offsetof(struct handle, handle), 0, NULL},
	{"_parent", T_OBJECT, offsetof(struct handle, parent), 0, NULL},
	{"_line", T_OBJECT, offsetof(struct handle, line), 0, NULL},
	{"_held", T_OBJECT, offsetof(struct handle, held), 0, NULL},
	{"_submitted", T_ULONGLONG, offsetof(struct handle, submitted), 0, NULL},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot handle_slots[] = {
	{Py_tp_doc,
	 "What the extension reads of an object without a look into its dict."},
	{Py_tp_traverse, handle_traverse},
	{Py_tp_clear, handle_clear},
	{Py_tp_dealloc, handle_dealloc},
	{Py_tp_members, handle_members},
	{0, NULL},
};

static PyType_Spec handle_spec = {
	.name = "accelhal._fast.Handle",
	.basicsize = sizeof(struct handle),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = handle_slots,
};

/* ---- bind() ------------------------------------------------------------------------ */

/* Take the item of given with that name into *to.  Return false with an exception set if
 * there is none. */
static bool take(PyObject *given, const char *name, PyObject **to)
{
	PyObject *thing = PyDict_GetItemString(given, name);

	if (thing == NULL) {
		PyErr_Format(PyExc_TypeError, "bind() needs %s", name);
		return false;
	}
	Py_XDECREF(*to);
	*to = Py_NewRef(thing);
	return true;
}

/* Take the address of the library's function with that name. */
static bool take_address(PyObject *given, const char *name, void *to)
{
	PyObject *number = NULL;
	void *address;

	if (!take(given, name, &number))
		return false;
	address = PyLong_AsVoidPtr(number);
	Py_DECREF(number);
	if (address == NULL) {
		if (PyErr_Occurred() == NULL)
			PyErr_Format(PyExc_TypeError, "%s is 0", name);
		return false;
	}
	memcpy(to, &address, sizeof(address));
	return true;
}

/* Return whether the classes are such that the C code may read their objects: those of
 * handles derive from Handle, the others from tuple.  Set an exception if not. */
static bool check_classes(const struct module *m)
{
	PyObject *const handles[] = {m->Buffer, m->HostMemory, m->Kernel,
				     m->Queue,  m->Sequence,   m->Timeline};
	PyObject *const tuples[] = {m->Point, m->Range};
	bool good = PyType_Check(m->Command);

	for (size_t i = 0; i < COUNT(handles); i++)
		good = good && PyType_Check(handles[i]) &&
		       PyType_IsSubtype((PyTypeObject *)handles[i], m->Handle);
	for (size_t i = 0; i < COUNT(tuples); i++)
		good = good && PyType_Check(tuples[i]) &&
		       PyType_IsSubtype((PyTypeObject *)tuples[i], &PyTuple_Type);
	if (!good)
		PyErr_SetString(PyExc_TypeError, "bind(): a class has another base");
	return good;
}

/* bind(given): take the classes and fallbacks of the package and the addresses of the
 * library's functions from a dict. */
static PyObject *bind(PyObject *self, PyObject *given)
{
	struct module *m = module_of(self);

	if (!PyDict_Check(given)) {
		PyErr_SetString(PyExc_TypeError, "bind() needs a dict");
		return NULL;
	}
	m->bound = false;
	for (size_t i = 0; i < COUNT(things); i++)
		if (!take(given, things[i].name, member_of(m, &things[i])))
			return NULL;
	if (!check_classes(m) || !take_address(given, "hal_submit", &m->hal_submit) ||
	    !take_address(given, "hal_sequence_submit", &m->hal_sequence_submit) ||
	    !take_address(given, "hal_wait", &m->hal_wait) ||
	    !take_address(given, "hal_timeline_get_value", &m->hal_timeline_get_value) ||
	    !take_address(given, "hal_buffer_get_bytes", &m->hal_buffer_get_bytes))
		return NULL;
	m->bound = true;
	Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------------------- */

static int module_exec(PyObject *self)
{
	struct module *m = module_of(self);

	m->Handle = (PyTypeObject *)PyType_FromModuleAndSpec(self, &handle_spec, NULL);
	if (m->Handle == NULL || PyModule_AddType(self, m->Handle) != 0)
		return -1;
	m->new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
	for (size_t i = 0; i < COUNT(strings); i++) {
		PyObject *string = PyUnicode_InternFromString(strings[i].name);

		if (string == NULL)
			return -1;
		*member_of(m, &strings[i]) = string;
	}
	/* The header that the module was compiled with; the package refuses another. */
	return PyModule_AddIntConstant(self, "VERSION",
				       HAL_VERSION_MAJOR << 16 | HAL_VERSION_MINOR << 8 |
					       HAL_VERSION_PATCH);
}

static int module_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct module *m = module_of(self);

	Py_VISIT(m->Handle);
	for (size_t i = 0; i < COUNT(things); i++)
		Py_VISIT(*member_of(m, &things[i]));
	return 0;
}

static int module_clear(PyObject *self)
{
	struct module *m = module_of(self);

	m->bound = false;
	Py_CLEAR(m->Handle);
	for (size_t i = 0; i < COUNT(strings); i++)
		Py_CLEAR(*member_of(m, &strings[i]));
	for (size_t i = 0; i < COUNT(things); i++)
		Py_CLEAR(*member_of(m, &things[i]));
	return 0;
}

static void module_free(void *self)
{
	(void)module_clear(self);
}

#define FUNCTION(name, kind)                                                             \
	{                                                                                \
#name, (PyCFunction)(void (*)(void))fast_##name, kind, NULL              \
	}

static PyMethodDef functions[] = {
	{"bind", bind, METH_O, NULL},  FUNCTION(submit, METH_FASTCALL),
	FUNCTION(wait, METH_FASTCALL), FUNCTION(reached, METH_O),
	FUNCTION(value, METH_O),       FUNCTION(launch, METH_FASTCALL),
	FUNCTION(fill, METH_FASTCALL), FUNCTION(copied, METH_FASTCALL),
	FUNCTION(plain, METH_O),       {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, module_exec},
	{0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "accelhal._fast",
	.m_doc = "The package's calls for each piece of work, in C.",
	.m_size = sizeof(struct module),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
	.m_free = module_free,
};

PyMODINIT_FUNC PyInit__fast(void);

PyMODINIT_FUNC PyInit__fast(void)
{
	return PyModuleDef_Init(&definition);
}
