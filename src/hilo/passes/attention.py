"""Attention: product, row region, further products become one `hilo.fusion`, computed by blocks of rows.

The scores between the products are then in a cache, and in memory only as far as others need them. What counts is what
is computed, not how it is written: the row region is any whose rows are those of a product's result (scaled, masked,
dropped out, its derivative ...), and the products behind it are those that take its rows batch by batch.

Imports ir, ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

from hilo.ir.dtypes import f32
from hilo.ir.module import Function
from hilo.ir.op import GET, Op
from hilo.ir.types import Results, TensorType
from hilo.ops.fusion import contracts, fusion
from hilo.ops.rows import NotRows, Rows, analyse, read_in_place
from hilo.passes.dce import dce
from hilo.passes.fuse_group import function_of
from hilo.record import field, record

SCORES: Final = 1 << 15  # bytes of scores from which blocks pay
ROW: Final = 1 << 15  # bytes of a row of scores of which a block fits into a cache
BATCH: Final = 1 << 18  # bytes of the scores of a batch that are one block
SHARED: Final = 2  # how many times as long rows of scores must be as those of a matrix which they all are made from
SEARCH: Final = 256  # ops looked at to find out whether one is made from another, before taking it that it is
BATCHES: Final = 4  # fewest, if a batch is a parallel unit
COLUMNS: Final = 32  # of a row that vectors can run along


@record
class _Pattern:
    """What becomes one fusion: the first product, the region, the products behind it, and reshapes between them."""

    first: Op
    region: Op
    ops: list[Op] = field(default_factory=list)
    products: list[Op] = field(default_factory=list)
    online: bool = False

    def operands(self) -> dict[Op, None]:
        """What comes from outside."""
        return dict.fromkeys(x for o in self.ops for x in o.operands if x not in self.ops)


def attention(f: Function, online: bool = False) -> Function:
    """`f`, whose ops are fused already, with its attention patterns as fusions; `online`: also those whose rows are too
    long for that, where softmax may be normalized as blocks of it come (`fast_math`)."""
    opened, products = open_fusions(f)
    finder = _Finder(opened, online)
    found = finder.run()
    if all(o in finder.taken for o in products):
        return found
    opened, _ = open_fusions(f, {fused for o, fused in products.items() if o in finder.taken})
    return _Finder(opened, online).run()


def open_fusions(f: Function, which: set[Op] | None = None) -> tuple[Function, dict[Op, Op]]:
    """`f` with products apart from what is computed of them, where they take much larger results of a row region; and
    the fusion that each such product comes from. Only fusions in `which`, if that is given."""
    new: dict[Op, Op] = {}
    products: dict[Op, Op] = {}
    ops: list[Op] = []
    for o in f.ops:
        made = o.with_operands(new.get(x, x) for x in o.operands) if any(x in new for x in o.operands) else o
        if (o in which if which is not None else _takes_region(o)):
            product, made = _parted(made)
            products[product] = o
            ops.append(product)
        if made is not o:
            new[o] = made
        ops.append(made)
    if not products:
        return f, products
    return f.replace(ops=ops, results=[new.get(r, r) for r in f.results]), products


def _takes_region(o: Op) -> bool:
    """Whether `o` is a fused product with an operand that a row region gives, twice as large as the result or more."""
    if o.kind.full_name != "hilo.fusion" or o.attrs["kind"] != "contraction" or not isinstance(o.type, TensorType):
        return False
    body = o.attrs["body"]
    hero = next(x for x in body.ops if contracts(x))
    if not _multiplies(hero) or any(x not in body.params for x in hero.operands):
        return False
    for x in hero.operands:
        outside = o.operands[body.params.index(x)]
        while outside.kind is GET or outside.kind.full_name == "stablehlo.reshape":
            outside = outside.operands[0]
        is_region = outside.kind.full_name == "hilo.fusion" and outside.attrs["kind"] == "rows"
        if is_region and x.tensor.size >= 2 * hero.tensor.size:
            return True
    return False


def _parted(o: Op) -> tuple[Op, Op]:
    """The product of a fusion, and the other ops as a fusion."""
    body = o.attrs["body"]
    hero = next(x for x in body.ops if contracts(x))
    outside = dict(zip(body.params, o.operands, strict=True))
    product = hero.with_operands(outside[x] for x in hero.operands)
    outside[hero] = product
    rest = [x for x in body.ops if x not in outside]
    inner = function_of(rest, body.results, {x: i for i, x in enumerate(body.ops)})
    operands = dict.fromkeys(x for p in rest for x in p.operands if x in outside)
    return product, fusion(*(outside[x] for x in operands), body=inner, kind="loop", loc=o.loc)


class _Finder:
    """Knows the users of the values of a function."""

    def __init__(self, f: Function, online: bool) -> None:
        self.f = f
        self.online = online
        self.position = {o: i for i, o in enumerate(f.ops)}
        self.users: dict[Op, list[Op]] = {o: [] for o in f.ops}
        for o in f.ops:
            for x in o.operands:
                self.users[x].append(o)
        self.results = set(f.results)
        self.taken: dict[Op, _Pattern] = {}

    def run(self) -> Function:
        values: dict[Op, tuple[Op, int]] = {}  # what fusions give, and as which result
        for o in self.f.ops:
            if o.kind.full_name == "hilo.fusion" and o.attrs["kind"] == "rows" and (p := self.match(o)) is not None:
                p.ops.sort(key=self.position.__getitem__)
                self.taken.update(dict.fromkeys(p.ops, p))
                made, outs = self.fused(p)
                values.update({r: (made, k) for k, r in enumerate(outs)})
        return self.rebuilt(values) if values else self.f

    # ---- finding
    def match(self, region: Op) -> _Pattern | None:
        """The pattern around a row region."""
        candidates = [(i, o) for i, x in enumerate(region.operands)
                      if (o := self.product_before(x)) is not None and o[-1].tensor.nbytes >= SCORES]  # fmt: skip
        if not candidates or not any(True for v in self.values_of(region) for _ in self.products_behind(v)):
            return None
        body = region.attrs["body"]
        try:
            rows = analyse(body)
        except NotRows:
            return None
        if not _along_rows(rows):
            return None
        own = read_in_place(body, rows)
        columns = prod(rows.shape[d] for d in rows.reduced)
        for i, chain in candidates:
            first = chain[-1]
            if body.params[i] not in own or list(region.operands).count(region.operands[i]) != 1:
                continue
            if not _has_columns(first, columns):
                continue
            long = columns * first.dtype.itemsize > ROW
            if long and not (self.online and _is_softmax(first, body, rows)):
                continue
            p = _Pattern(first, region, [*chain, region], online=long)
            self.add_products(p, rows, columns)
            if p.products and not (long and self.shows_more(p)):
                return p
        return None

    def shows_more(self, p: _Pattern) -> bool:
        """Whether more is taken of a pattern than the result of one product of f32, by its own shape alone."""
        o = p.products[0]
        inside = set(p.ops)
        used = (x in self.results or any(u not in inside for u in self.users[x]) for x in p.ops if x is not o)
        plain = all(x.dtype is f32 for x in (o, *o.operands)) and not o.attrs.get("algorithm")
        return len(p.products) != 1 or not plain or any(used)

    def product_before(self, x: Op) -> list[Op] | None:
        """The ops from `x` back to a product, if nothing but reshapes lies between and nobody else uses any of them."""
        chain = []
        while len(self.users[x]) == 1 and x not in self.results:
            chain.append(x)
            if x.kind.full_name == "stablehlo.reshape":
                x = x.operands[0]
                continue
            return chain if _multiplies(x) and x not in self.taken else None
        return None

    def add_products(self, p: _Pattern, rows: Rows, columns: int) -> None:
        """The products that take rows of the region's results, with the reshapes before them."""
        batches = prod(p.first.shape[: len(p.first.attrs["lhs_batching_dimensions"])])
        size = prod(rows.shape) // columns // max(batches, 1)
        small = size * columns * p.first.dtype.itemsize <= BATCH and batches >= BATCHES
        # One matrix that all rows are multiplied by is mostly one of weights, better packed once than for each block.
        most = columns // SHARED if batches == 1 else None
        if _is_shared(p.first, most):
            return
        for value in self.values_of(p.region):
            for path in self.products_behind(value):
                o = path[-1]
                uses = [x in path or x is value for x in o.operands]
                if sum(uses) != 1 or o in self.taken or o in p.ops or _is_shared(o, most):
                    continue
                if not _takes_batches(o, uses.index(True), batches, size * columns):
                    continue
                if (p.online or not small) and not (uses[0] and _takes_rows(o, columns)):
                    continue
                between = [x for x in (value, *path[:-1]) if x not in p.ops]
                p.ops.extend(between)
                if self.leads_back(p, o):
                    p.ops = [x for x in p.ops if x not in between]
                    continue
                p.products.append(o)
                p.ops.append(o)

    def values_of(self, region: Op) -> list[Op]:
        """The results of a region that are as large as what it reduces."""
        values = [u for u in self.users[region] if u.kind is GET] if isinstance(region.type, Results) else [region]
        return [v for v in values if isinstance(v.type, TensorType)]

    def products_behind(self, value: Op) -> Iterator[list[Op]]:
        """Ways from a value over reshapes to products."""
        stack: list[list[Op]] = [[u] for u in dict.fromkeys(self.users[value])]
        while stack:
            path = stack.pop(0)
            if _multiplies(path[-1]):
                yield path
            elif path[-1].kind.full_name == "stablehlo.reshape":
                stack.extend([*path, u] for u in dict.fromkeys(self.users[path[-1]]))

    def leads_back(self, p: _Pattern, product: Op) -> bool:
        """Whether `product` needs something else that is made from what the pattern gives: it cannot be part of it."""
        start = self.position[p.first]
        stack = [x for x in product.operands if x not in p.ops]
        seen = set(stack)
        while stack:
            for x in self.needed(stack.pop()):
                if x in p.ops or len(seen) > SEARCH:
                    return True
                if x not in seen and self.position[self.taken[x].ops[-1] if x in self.taken else x] > start:
                    seen.add(x)
                    stack.append(x)
        return False

    def needed(self, o: Op) -> Iterable[Op]:
        """What is computed before `o`; of a pattern all that it needs."""
        return self.taken[o].operands() if o in self.taken else o.operands

    # ---- making
    def fused(self, p: _Pattern) -> tuple[Op, list[Op]]:
        """The fusion (with operands of the old function), and the values that it stands for, in order."""
        inside = set(p.ops)
        shown = (o for o in p.ops if o in self.results or any(u not in inside for u in self.users[o]))
        outs = [o for o in shown if isinstance(o.type, TensorType)]
        outs += [u for u in self.users[p.region] if u.kind is GET and u not in inside]
        gets = [o for o in outs if o not in inside]
        body = function_of([*p.ops, *gets], outs, self.position)
        return fusion(*p.operands(), body=body, kind="online" if p.online else "attention",
                      loc=p.products[-1].loc), outs  # fmt: skip

    def rebuilt(self, values: dict[Op, tuple[Op, int]]) -> Function:
        """The function with fusions in place of the values that they give, operands first."""
        done: dict[Op, Op] = {}
        ops: list[Op] = []
        results: dict[Op, tuple[Op, ...]] = {}

        def needed(o: Op) -> tuple[Op, ...]:
            return values[o][0].operands if o in values else o.operands

        def make(o: Op) -> None:
            if o not in values:
                changed = any(done[x] is not x for x in o.operands)
                done[o] = o.with_operands(done[x] for x in o.operands) if changed else o
                ops.append(done[o])
                return
            old, number = values[o]
            if old not in results:
                made = old.with_operands(done[x] for x in old.operands)
                results[old] = tuple(made.results())
                ops.append(made)
                if isinstance(made.type, Results):
                    ops.extend(results[old])
            done[o] = results[old][number]

        for root in self.f.ops:
            if root in self.taken and root not in values:
                continue
            stack = [(root, False)]
            while stack:
                o, ready = stack.pop()
                if o in done:
                    continue
                if ready:
                    make(o)
                else:
                    stack.append((o, True))
                    stack.extend((x, False) for x in reversed(needed(o)) if x not in done)
        return dce(self.f.replace(ops=ops, results=[done[r] for r in self.f.results]))


# ---- what fits
def _multiplies(o: Op) -> bool:
    """Whether `o` is a product of fixed sizes."""
    if o.kind.full_name != "stablehlo.dot_general" or not contracts(o):
        return False
    return o.tensor.is_static and all(x.tensor.is_static for x in o.operands) and o.tensor.size > 0


def _along_rows(rows: Rows) -> bool:
    """Whether a region's rows lie in memory one after the other."""
    kept = [d for d in rows.kept if rows.shape[d] != 1]
    reduced = [d for d in rows.reduced if rows.shape[d] != 1]
    return bool(reduced) and (not kept or kept[-1] < reduced[0]) and any(rows.full[-1])


def _is_softmax(first: Op, body: Function, rows: Rows) -> bool:
    """Whether a region is a softmax of f32 along the last axis, behind a product with one stride for rows and for
    columns."""
    from hilo.ops.softmax import logits

    x = logits(body, rows)
    plain = all(v.dtype is f32 for v in (first, *first.operands, *body.results)) and not first.attrs.get("algorithm")
    return plain and x is not None and x.dtype is f32 and x.shape[-1] == prod(rows.shape[d] for d in rows.reduced)


def _is_shared(product: Op, most: int | None) -> bool:
    """Whether a product has a constant as operand, or (where `most` is given) a matrix wider than that."""
    if any(x.kind.full_name == "stablehlo.constant" for x in product.operands):
        return True
    axes = product.attrs["lhs_contracting_dimensions"]
    depth = prod(product.operands[0].shape[a] for a in axes)
    return most is not None and min(depth, product.operands[1].tensor.size // max(depth, 1)) > most


def _has_columns(product: Op, columns: int) -> bool:
    """Whether `columns` is the size of the axes of a product's result that come from the right."""
    left = len(product.operands[0].shape) - len(product.attrs["lhs_contracting_dimensions"])
    return columns >= COLUMNS and prod(product.shape[left:]) == columns


def _takes_batches(product: Op, which: int, batches: int, size: int) -> bool:
    """Whether operand `which` of a product consists of its batches, one after the other, each of `size` elements."""
    axes = product.attrs[("lhs_batching_dimensions", "rhs_batching_dimensions")[which]]
    shape = product.operands[which].shape
    return axes == tuple(range(len(axes))) and prod(shape[: len(axes)]) == batches and prod(shape[len(axes) :]) == size


def _takes_rows(product: Op, columns: int) -> bool:
    """Whether rows of `columns` elements of a product's left operand are what it adds up."""
    shape, axes = product.operands[0].shape, product.attrs["lhs_contracting_dimensions"]
    return axes == tuple(range(len(shape) - len(axes), len(shape))) and prod(shape[a] for a in axes) == columns
