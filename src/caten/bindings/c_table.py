"""The table of a library: a header with which a C program finds an operator by name, element types and ranks."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.dtypes import DTYPES

TEXT = """\
/* The operators of {name}.h by name, and by the element types and ranks of their inputs:
 *
 *   const ct_operator *found = ct_find("softmax", "float32[2]");
 *   if (found) ((int32_t (*)(const float *, float *, int64_t, int64_t))found->call)(x, y, rows, columns);
 *
 * Operators of the library of caten have the name without the types that the name of the function ends with. */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <stddef.h>
#include <string.h>

#include "{name}.h"

typedef struct {{
    const char *name;       /* softmax */
    const char *inputs;     /* float32[2],int64[0]: the element type and the rank of each */
    const char *symbol;     /* of the function */
    void (*call)(void);     /* the function: its type is in {name}.h */
    const char *(*check)(int32_t);
}} ct_operator;

/* In the order of strcmp, by name and then by inputs. */
static const ct_operator ct_operators[] = {{
{rows}
}};
enum {{ ct_operator_count = sizeof ct_operators / sizeof *ct_operators }};

/* The operator with this name and these inputs; NULL if there is none. */
static inline const ct_operator *ct_find(const char *name, const char *inputs)
{{
    size_t low = 0, high = ct_operator_count;
    while (low < high) {{
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, ct_operators[middle].name);
        if (order == 0)
            order = strcmp(inputs, ct_operators[middle].inputs);
        if (order == 0)
            return &ct_operators[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }}
    return NULL;
}}

#endif /* CT_TABLE_H */
"""


def table(manifest: Mapping[str, Any], name: str, generic_name: Callable[[str], str]) -> str:
    """The table's text for the library that `manifest` describes. `name`: of its header, without the suffix.
    `generic_name`: of the operator that one with this name is an instance of."""
    ops = manifest.get("ops") or [manifest]
    found = sorted([(generic_name(op["op"]), _inputs(op), op["symbol"], op["symbols"]["check"]) for op in ops],
                   key=lambda row: (row[0].encode(), row[1].encode()))
    rows = [f'    {{"{op}", "{inputs}", "{call}", (void (*)(void)){call}, {check}}},'
            for op, inputs, call, check in found]
    return TEXT.format(name=name, rows="\n".join(rows))


def _inputs(op: Mapping[str, Any]) -> str:
    return ",".join([f"{DTYPES[a['dtype']].numpy}[{len(a['shape'])}]" for a in op["arguments"]
                     if a["kind"] != "size" and a["direction"] != "out"])
