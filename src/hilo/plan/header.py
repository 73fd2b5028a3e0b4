"""The C header of a program that is compiled to an object file: what its entry takes, and how it is called.

Imports plan.program. The object and the header need nothing of hilo's where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hilo.plan.program import Buffer, Program

_COMMON = """#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HILO_CTX
#define HILO_CTX
/* What a program needs of its surroundings. */
struct hilo_ctx {
    /* Runs fn over [0, units) in pieces of `chunk` units, in any order, on any threads; returns when all are done. */
    void (*parallel_for)(struct hilo_ctx *ctx, void (*fn)(void **bufs, int64_t begin, int64_t end), void **bufs,
                         int64_t units, int64_t chunk);
    void **constants;
    int32_t (*host_call)(struct hilo_ctx *ctx, int64_t index, void **bufs); /* not used by programs in objects */
    int64_t threads;
    char *message; /* where a custom call that fails may say why; may be 0 */
    int64_t message_size, failed;
};

/* One piece after the other, on the thread that calls. */
static inline void hilo_in_turn(struct hilo_ctx *ctx, void (*fn)(void **, int64_t, int64_t), void **bufs, int64_t units,
                                int64_t chunk) {
    (void)ctx;
    for (int64_t i = 0; i < units; i += chunk) fn(bufs, i, units - i < chunk ? units : i + chunk);
}
#endif
"""


def symbol_of(program: Program) -> str:
    """The entry's name in an object file."""
    return "hilo_" + re.sub(r"\W", "_", program.name, flags=re.ASCII)


def header(program: Program, machine: str) -> str:
    """The header for the object file of `program`, made for the target called `machine`."""
    name = symbol_of(program)
    upper = name.upper()
    constants = f"(void **){name}_constants" if program.constants else "0"
    declared = f"extern void *const {name}_constants[{len(program.constants)}];\n" if program.constants else ""
    calls = dict.fromkeys(h.target.symbol for h in program.hosts if h.is_direct)
    called = "".join(f"\n   It calls {s}: int32_t (const struct hilo_call *), see hilo_custom_call.h." for s in calls)
    return f"""/* {_comment(program.name)}, compiled by hilo for {machine}.

   args:    {_places(program.arguments)}
   results: {_places(program.results)}
   Arrays are dense and row-major; results and the arena are 64-byte aligned, arguments by 16 bytes. No result may
   overlap an argument. Narrow types take a byte an element; complex numbers are pairs. Link with -lm.

   Gives 0, or a number that says what went wrong.{called} */
#ifndef {upper}_H
#define {upper}_H

{_COMMON}
#define {upper}_ARGS {len(program.arguments)}
#define {upper}_RESULTS {len(program.results)}
#define {upper}_ARENA {program.arena_size} /* bytes */

{declared}int32_t {name}(struct hilo_ctx *ctx, void **args, void **results, void *arena);

/* On the calling thread alone. */
static inline int32_t {name}_run(void **args, void **results, void *arena) {{
    struct hilo_ctx ctx = {{hilo_in_turn, {constants}, 0, 1, 0, 0, 0}};
    return {name}(&ctx, args, results, arena);
}}

#ifdef __cplusplus
}}
#endif
#endif
"""


def _places(buffers: Sequence[Buffer]) -> str:
    """What pointers point to, one a line."""
    return "\n            ".join(f"[{i}] {b.type}, {b.nbytes} bytes" for i, b in enumerate(buffers)) or "none"


def _comment(text: str) -> str:
    """A text that ends no comment."""
    return text.replace("*/", "* /").replace("\n", " ")
