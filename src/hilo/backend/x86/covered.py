"""Which functions the generator does. Imports loop, x86.select and, for products, backend.x86_products."""

from __future__ import annotations

from collections.abc import Sequence

from hilo.backend.target import Target
from hilo.backend.x86.allocate import FLOATS
from hilo.backend.x86.calls import flattened
from hilo.backend.x86.select import COVERS, OF_VECTORS, SCALARS, VECTORS, load_kinds
from hilo.backend.x86.uses import is_constant
from hilo.loop.nodes import Func, Node, VType


def covered(func: Func, target: Target) -> bool:
    if "product" in func.attrs:
        from hilo.backend import x86_products

        if x86_products.covers(func, target):
            return True
    if not handed([p.type for p in func.params], func.ret):
        return False
    load_kinds()
    nodes = [n for n in nodes_of(func) if not is_constant(n)]
    if not any(map(has_vectors, nodes)) and all(n.blocks or node_covered(n) for n in nodes):
        return True
    load_kinds(OF_VECTORS)
    return all(n.blocks or node_covered(n) for n in nodes)


def nodes_of(func: Func) -> list[Node]:
    """All nodes of a function."""
    found: list[Node] = []
    stack = [func.body]
    while stack:
        nodes = stack.pop().nodes
        found += nodes
        stack += [b for n in nodes if n.blocks for b in n.blocks]
    return found


def has_vectors(node: Node) -> bool:
    """Whether a node takes or gives a vector."""
    return node.type.lanes > 1 or any(a.type.lanes > 1 for a in node.args)


def node_covered(node: Node) -> bool:
    f = (SCALARS if node.type.lanes == 1 else VECTORS).get(node.kind)
    if f is None:
        return False
    check = COVERS.get(f)
    if check is not None and not check(node):
        return False
    return node.kind not in ("call", "callptr") or handed([a.type for a in node.args], node.type)


def handed(types: Sequence[VType], result: VType) -> bool:
    """Whether a function takes and gives values of these types in registers, but for scalars on the stack."""
    if not passes(result) or not all(map(passes, types)):
        return False
    vectors = [t.lanes > 1 for t in flattened(tuple(types)) if t.is_float or t.lanes > 1]
    return not any(vectors[len(FLOATS) :])


def passes(t: VType) -> bool:
    """Whether values of a type are handed to functions in registers."""
    return t.lanes == 1 or (t.scalar != "i1" and t.lanes * t.size in (16, 32, 64, 128, 256))
