/* SPDX-License-Identifier: Apache-2.0 */
/* module.h - a parsed module: tokens of its text, statements of tokens, and what is
 * declared.  The interpreter of the tests runs it as it is. */
#ifndef BACKENDS_CUDA_PTX_MODULE_H
#define BACKENDS_CUDA_PTX_MODULE_H

#include "ptx.h"

/* What this library adds has names that begin so, behind a % or not; what ENTRY and LOOP
 * do, BOUNDS, COLOR. */
#define PTX_OWN        "_hal"
#define PTX_OWN_STOPS  "_hals_"
#define PTX_OWN_BOUNDS "_halb_"
#define PTX_OWN_COLOR  "_halc_"

#define PTX_DEPTH_MAX  64u /* of braces */
#define PTX_BYTES_MAX  (1u << 28)
#define PTX_OPERANDS   8u
#define PTX_PARAMS_OLD 4352u /* bytes of parameters, below PTX 8.1 */
#define PTX_PARAMS_NEW 32764u

enum ptx_token_kind {
	PTX_END,
	PTX_NAME,   /* add, $L__BB0_1, %r1, _ */
	PTX_DOT,    /* .u32, .shared::cta */
	PTX_NUMBER, /* 12, 0x1f, 0f3F800000, 1.5 */
	PTX_STRING,
	PTX_SIGN, /* one character */
};

struct ptx_token {
	uint32_t at, bytes, line;
	uint32_t kind; /* enum ptx_token_kind */
	/* What a name stands for where it is, PTX_BOUND_*; 0: none of these. */
	uint32_t bound;
};

#define PTX_BOUND_REGISTER(i) (4 * (i) + 1)
#define PTX_BOUND_VARIABLE(i) (4 * (i) + 2)
#define PTX_BOUND_FUNCTION(i) (4 * (i) + 3)
#define PTX_BOUND_UNREAD      UINT32_MAX /* its declaration could not be read */

enum ptx_statement_kind {
	PTX_INSTRUCTION,
	PTX_LABEL,
	PTX_DIRECTIVE,
	PTX_OPEN,
	PTX_CLOSE,
};

/* An operand's tokens. */
struct ptx_operand {
	uint32_t first, count;
};

struct ptx_statement {
	uint32_t kind;         /* enum ptx_statement_kind */
	uint32_t first, count; /* tokens, its ; too */
	/* Of an instruction: */
	uint32_t guard; /* token of the predicate; 0: none */
	bool guard_not;
	uint32_t op; /* token of the first word; its dots follow it */
	uint32_t dots;
	uint32_t operand_count;
	struct ptx_operand operand[PTX_OPERANDS];
	bool more; /* operands than that */
};

struct ptx_register {
	uint32_t name, name_bytes; /* in the text */
	uint32_t count;            /* NAME0 .. NAMEcount-1; 0: NAME itself */
	uint32_t bits;             /* of each element; 1: a predicate */
	uint32_t lanes;            /* 2 or 4: a vector */
};

enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST, PTX_PARAM };

struct ptx_variable {
	uint32_t name; /* token */
	uint32_t space;
	bool module; /* no function's */
	uint32_t align;
	uint64_t bytes;        /* 0: it is not said */
	uint32_t first, count; /* tokens of what it begins with; 0: none */
	uint32_t element;      /* bytes */
};

struct ptx_function {
	uint32_t name; /* token */
	bool entry, has_body, parens;
	uint32_t open,
		close; /* tokens of the parameters' parentheses; or the name twice */
	uint32_t tuned, brace; /* tokens between parameters and body; its { */
	uint32_t first, count; /* statements: those of the body, without braces */
	uint32_t end;          /* token of the body's } */
	uint32_t first_register, registers; /* those of its parameters, too */
	uint32_t first_variable, variables; /* of shared and local memory */
	uint32_t first_param, params;       /* variables, too */
	uint64_t param_bytes;
	/* What could not be read: the token it is noticed at, and the fault; or NULL. */
	uint32_t odd;
	const char *odd_what;
	bool own, own_stops, own_color; /* it has names that begin so */
	uint32_t same; /* the first function that is declared with this name */
	uint32_t def;  /* the one with a body; else the first */
	uint32_t does; /* PTX_DOES_*, of what is no kernel */
	/* Of what is no kernel, by ENTRY and LOOP: why it is refused, or NULL; and a
	 * function that it may call, or itself, that is: its index and 1, or 0. */
	char *fault[2];
	uint32_t faulty[2];
	uint32_t named; /* of a kernel: token that takes its address; 0: none */
};

struct ptx {
	char *text; /* ends in 0 */
	uint32_t bytes;
	uint32_t major, minor;
	uint32_t token_count, statement_count, register_count, variable_count;
	uint32_t function_count, entry_count;
	struct ptx_token *tokens;
	struct ptx_statement *statements;
	struct ptx_register *registers;
	struct ptx_variable *variables;
	struct ptx_function *functions;
	uint32_t *entries; /* functions */
	uint32_t sm;       /* of the target: 90; 0: not said */
	/* The first variable that begins with an address; UINT32_MAX: none does. */
	uint32_t pointing;
	uint32_t any_faulty[2]; /* of all functions */
	uint32_t all_do;        /* PTX_DOES_* of all functions */
};

const char *ptx_at(const struct ptx *m, uint32_t token);
/* How many of its bytes a message shows. */
int ptx_shown(const struct ptx *m, uint32_t token);
bool ptx_is(const struct ptx *m, uint32_t token, const char *text);
bool ptx_begins(const struct ptx *m, uint32_t token, const char *text);
/* Is there such a dot behind the first word? */
bool ptx_dot(const struct ptx *m, const struct ptx_statement *s, const char *text);
enum ptx_space ptx_space_of(const struct ptx *m, const struct ptx_statement *s);
/* The register that the token names; NULL. */
const struct ptx_register *ptx_register_of(const struct ptx *m,
					   const struct ptx_function *f,
					   uint32_t statement, uint32_t token);
/* The index of the function that the token names, the one with a body if there is one;
 * UINT32_MAX: it names none. */
uint32_t ptx_function_of(const struct ptx *m, uint32_t token);
/* The variable that the token names, f's (whose parameters count) or the module's; NULL.
 */
const struct ptx_variable *ptx_variable_of(const struct ptx *m,
					   const struct ptx_function *f,
					   uint32_t statement, uint32_t token);
/* A number that fits in 64 bits, with its sign, of tokens; false: it is none. */
bool ptx_integer(const struct ptx *m, uint32_t token, uint32_t count, int64_t *value);
uint32_t ptx_type_bits(const struct ptx *m, uint32_t token); /* 0: no type */

/* ---- what an instruction may do ---------------------------------------------------- */

enum ptx_class {
	PTX_UNKNOWN,
	PTX_PLAIN,   /* registers, and memory of the block */
	PTX_ACCESS,  /* ld, ldu, st, atom, red, prefetch, ...: of a space, [address] */
	PTX_CPASYNC, /* from global to shared memory */
	PTX_BULK,    /* as many bytes as a register says */
	PTX_TENSOR,  /* by a tensor map, which hides addresses */
	PTX_TEXTURE, /* by a descriptor */
	PTX_MATRIX,  /* wmma.load, wmma.store: with a stride */
	PTX_CVTA,    /* from a space to generic, or to a space */
	PTX_BRANCH,
	PTX_CALL,
	PTX_RETURN, /* ret, exit */
	PTX_BARRIER,
	PTX_MBARRIER,
	PTX_TRAP,
	PTX_CLUSTER,
	PTX_DEPEND, /* on other launches */
	PTX_WAIT,   /* nanosleep */
	PTX_REGISTERS,
	PTX_MULTIMEM,
};

enum ptx_class ptx_class_of(const struct ptx *m, const struct ptx_statement *s);
__attribute__((format(printf, 3, 4))) int ptx_fail(char why[PTX_WHY], int err,
						   const char *fmt, ...);

#endif
