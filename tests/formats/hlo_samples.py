# ruff: noqa: E501  (programs are quoted as they are printed)
"""Small HLO texts with arguments and what they compute, for tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

F = np.float32
I = np.int32


class Sample(NamedTuple):
    text: str
    arguments: list[Any]
    results: list[Any]


X = np.arange(6, dtype=F).reshape(2, 3)
SUM = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""

SAMPLES: dict[str, Sample] = {}


def sample(name: str, text: str, arguments: list[Any], results: list[Any]) -> None:
    SAMPLES[name] = Sample(text.strip() + "\n", arguments, [np.asarray(r) for r in results])


sample("optimized form", """
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->(f32[2,3]{1,0}, f32[2]{0})}, allow_spmd_sharding_propagation_to_output={true,true}

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=12 end_column=43}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%region_0.1 (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a.1, %b.1), metadata={op_name="jit(f)/reduce_sum" stack_frame_id=1}
}

%fused_computation (param_0: f32[2,3], param_1: f32[]) -> (f32[2,3], f32[2]) {
  %param_0 = f32[2,3]{1,0} parameter(0)
  %param_1 = f32[] parameter(1)
  %exp.1 = f32[2,3]{1,0} multiply(%param_0, %param_0), metadata={op_name="jit(f)/mul" source_file="other.py" source_line=3}
  %sum.1 = f32[2]{0} reduce(%exp.1, %param_1), dimensions={1}, to_apply=%region_0.1
  ROOT %t = (f32[2,3]{1,0}, f32[2]{0}) tuple(%exp.1, %sum.1)
}

ENTRY %main.5 (x: f32[2,3]) -> (f32[2,3], f32[2]) {
  %x = f32[2,3]{1,0} parameter(0), metadata={op_name="x"}
  %zero = f32[] constant(0)
  %fusion = (f32[2,3]{1,0}, /*index=1*/f32[2]{0}) fusion(f32[2,3]{1,0} %x, f32[] %zero), kind=kInput, calls=%fused_computation, backend_config={"outer_dimension_partitions":["2"],"n":{"m":1}}
  %first = f32[2,3]{1,0} get-tuple-element(%fusion), index=0
  %second = f32[2]{0} get-tuple-element(%fusion), index=1 // the sums
  ROOT %tuple = (f32[2,3]{1,0}, f32[2]{0}) tuple(%first, %second)
}
""", [X], [X * X, (X * X).sum(axis=1)])

sample("while of a tuple", """
HloModule loop
cond { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT lt = pred[] compare(i, n), direction=LT }
body {
  s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  double = f32[2] add(x, x)
  ROOT out = (s32[], f32[2]) tuple(next, double)
}
ENTRY e {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[2]) tuple(zero, x)
  w = (s32[], f32[2]) while(init), condition=cond, body=body, backend_config={"known_trip_count":{"n":"4"}}
  ROOT r = f32[2] get-tuple-element(w), index=1
}
""", [np.array([1, -3], F)], [np.array([16, -48], F)])

sample("while of one array", """
HloModule loop
small { x = s32[] parameter(0)
  n = s32[] constant(10)
  ROOT lt = pred[] compare(x, n), direction=LT }
double { x = s32[] parameter(0)
  ROOT y = s32[] add(x, x) }
ENTRY e { x = s32[] parameter(0)
  ROOT w = s32[] while(x), condition=small, body=double }
""", [I(3)], [I(12)])

sample("conditional by a predicate", """
HloModule c
then { p = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(p), index=0
  b = f32[] get-tuple-element(p), index=1
  ROOT r = (f32[], f32[]) tuple(b, a) }
else { x = f32[] parameter(0)
  y = f32[] negate(x)
  ROOT r = (f32[], f32[]) tuple(y, x) }
ENTRY e { q = pred[] parameter(0)
  a = f32[] parameter(1)
  b = f32[] parameter(2)
  t = (f32[], f32[]) tuple(a, b)
  ROOT c = (f32[], f32[]) conditional(q, t, a), true_computation=then, false_computation=else }
""", [np.False_, F(2), F(5)], [F(-2), F(2)])

sample("conditional by an index", """
HloModule c
zero { p = s32[2] parameter(0)
  ROOT r = s32[2] add(p, p) }
one { p = () parameter(0)
  c = s32[2] constant({7, 8})
  ROOT r = s32[2] copy(c) }
ENTRY e { k = s32[] parameter(0)
  x = s32[2] parameter(1)
  t = () tuple()
  ROOT c = s32[2] conditional(k, x, t), branch_computations={zero, one} }
""", [I(9), np.array([1, 2], I)], [np.array([7, 8], I)])

sample("nested tuples in the signature", """
HloModule m, entry_computation_layout={((f32[2]{0}, (s32[], f32[3]{0})), f32[2,3]{0,1})->((f32[2]{0}), (s32[], (f32[2,3]{0,1})))}
ENTRY e {
  y = f32[2,3] parameter(1)
  p = (f32[2], (s32[], f32[3])) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  q = (s32[], f32[3]) get-tuple-element(p), index=1
  n = s32[] get-tuple-element(q), index=0
  row = f32[3] get-tuple-element(q), index=1
  rows = f32[2,3] broadcast(row), dimensions={1}
  z = f32[2,3] add(rows, y)
  t0 = (f32[2]) tuple(a)
  t2 = (f32[2,3]) tuple(z)
  t1 = (s32[], (f32[2,3])) tuple(n, t2)
  ROOT t = ((f32[2]), (s32[], (f32[2,3]))) tuple(t0, t1)
}
""", [np.array([1, 2], F), I(4), np.array([10, 20, 30], F), X],
    [np.array([1, 2], F), I(4), X + np.array([10, 20, 30], F)])

sample("bitcast by layouts", """
HloModule b
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  t = f32[3,2]{0,1} bitcast(x)
  r = f32[3,2]{1,0} bitcast(x)
  c = f32[2,3]{0,1} copy(x)
  u = f32[6]{0} bitcast(c)
  v = s32[2,3]{1,0} bitcast(x)
  ROOT out = (f32[3,2], f32[3,2], f32[6], s32[2,3]) tuple(t, r, u, v)
}
""", [X], [X.T, X.reshape(3, 2), X.T.reshape(6), X.view(I)])

sample("bitcast to narrower and wider elements", """
HloModule b
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  bytes = u8[24]{0} bitcast(x)
  halves = s16[2,3,2]{2,1,0} bitcast(x)
  back = f32[3,2]{1,0} bitcast(bytes)
  ROOT out = (u8[24], s16[2,3,2], f32[3,2]) tuple(bytes, halves, back)
}
""", [X], [X.view(np.uint8).reshape(24), X.view(np.int16).reshape(2, 3, 2), X.reshape(3, 2)])

sample("bitcast of tiles", """
HloModule b
ENTRY e {
  x = s32[4,4]{1,0:T(2,2)} parameter(0)
  flat = s32[16]{0} bitcast(x)
  y = s32[3,2]{1,0:T(2,2)} parameter(1)
  pairs = s32[2,1,2,2]{3,2,1,0} bitcast(y)
  part = s32[1,1,2,2] slice(pairs), slice={[0:1], [0:1], [0:2], [0:2]}
  ROOT out = (s32[16], s32[1,1,2,2]) tuple(flat, part)
}
""", [np.arange(16, dtype=I).reshape(4, 4), np.arange(6, dtype=I).reshape(3, 2)],
    [np.array([0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15], I), np.arange(4, dtype=I).reshape(1, 1, 2, 2)])

sample("constants", """
HloModule k
ENTRY e {
  a = s32[2,2]{1,0} constant({ /*i0=0*/ { 1, -2 }, { 3, 4 } })
  b = f32[5]{0} constant({inf, -inf, nan, -0, 1e-45})
  c = pred[3] constant({true, 0, 1})
  d = c64[2] constant({(1, -2), (inf, 0.5)})
  e0 = f32[0,3] constant({  })
  f = u64[] constant(18446744073709551615)
  g = bf16[2] constant({1.5, nan})
  h = (f32[], (s32[2], c64[])) constant((2.5, ({1, 2}, (3, 4))))
  i = f32[] get-tuple-element(h), index=0
  j = (s32[2], c64[]) get-tuple-element(h), index=1
  k = s32[2] get-tuple-element(j), index=0
  l = c64[] get-tuple-element(j), index=1
  m = s4[2] constant({-8, 7})
  n = s32[2] convert(m)
  o = f32[2] convert(g)
  ROOT t = (s32[2,2], f32[5], pred[3], c64[2], f32[0,3], u64[], f32[2], f32[], s32[2], c64[], s32[2]) tuple(a, b, c, d, e0, f, o, i, k, l, n)
}
""", [], [np.array([[1, -2], [3, 4]], I), np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45], F),
          np.array([True, False, True]), np.array([1 - 2j, complex(np.inf, 0.5)], np.complex64), np.zeros((0, 3), F),
          np.uint64(2**64 - 1), np.array([1.5, np.nan], F), F(2.5), np.array([1, 2], I), np.complex64(3 + 4j),
          np.array([-8, 7], I)])

sample("shape operations", """
HloModule s
ENTRY e {
  x = f32[2,3] parameter(0)
  v = f32[] parameter(1)
  p = f32[4,5] pad(x, v), padding=1_1x-1_1_1
  s = f32[1,2] slice(x), slice={[1:2], [0:3:2]}
  t = f32[3,2] transpose(x), dimensions={1,0}
  b = f32[3,4,2] broadcast(x), dimensions={2,0}
  c = f32[2,6] concatenate(x, x), dimensions={1}
  r = f32[2,3] reverse(x), dimensions={0,1}
  i = s32[2,3] iota(), iota_dimension=1
  k = s32[] constant(1)
  z = s32[] constant(0)
  d = f32[1,2] dynamic-slice(x, k, z), dynamic_slice_sizes={1,2}
  u = f32[2,3] dynamic-update-slice(x, d, z, k)
  n = s32[] get-dimension-size(x), dimensions={1}
  ROOT out = (f32[4,5], f32[1,2], f32[3,2], f32[3,4,2], f32[2,6], f32[2,3], s32[2,3], f32[1,2], f32[2,3], s32[]) tuple(p, s, t, b, c, r, i, d, u, n)
}
""", [X, F(9)], [np.array([[9, 9, 9, 9, 9], [9, 1, 9, 2, 9], [9, 4, 9, 5, 9], [9, 9, 9, 9, 9]], F), X[1:2, ::2], X.T,
                 np.broadcast_to(X.T[:, None, :], (3, 4, 2)), np.concatenate([X, X], 1), X[::-1, ::-1],
                 np.broadcast_to(np.arange(3, dtype=I), (2, 3)), X[1:2, :2],
                 np.array([[0, 3, 4], [3, 4, 5]], F), I(3)])

sample("dot", """
HloModule d
ENTRY e {
  x = f32[2,2,3] parameter(0)
  y = f32[2,3,1] parameter(1)
  ROOT d = f32[2,2,1] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={highest,highest}
}
""", [np.arange(12, dtype=F).reshape(2, 2, 3), np.ones((2, 3, 1), F)], [np.array([[[3], [12]], [[21], [30]]], F)])

sample("reduce of several, sort, map", """
HloModule r
larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GE
  m = f32[] select(gt, a, b)
  k = s32[] select(gt, i, j)
  ROOT t = (f32[], s32[]) tuple(m, k)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT lt = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
square { a = f32[] parameter(0)
  ROOT s = f32[] multiply(a, a) }
ENTRY e {
  x = f32[2,3] parameter(0)
  i = s32[2,3] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  top = (f32[2], s32[2]) reduce(x, i, low, zero), dimensions={1}, to_apply=larger
  which = s32[2] get-tuple-element(top), index=1
  n = f32[2,3] negate(x)
  sorted = (f32[2,3], s32[2,3]) sort(n, i), dimensions={1}, is_stable=true, to_apply=less
  order = s32[2,3] get-tuple-element(sorted), index=1
  sq = f32[2,3] map(x), dimensions={0,1}, to_apply=square
  ROOT t = (s32[2], s32[2,3], f32[2,3]) tuple(which, order, sq)
}
""", [X], [np.array([2, 2], I), np.array([[2, 1, 0], [2, 1, 0]], I), X * X])

sample("gather and scatter", "HloModule g" + SUM + """
ENTRY e {
  x = f32[3,2] parameter(0)
  i = s32[2,1] parameter(1)
  g = f32[2,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}
  s = f32[3,2] scatter(x, i, g), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  ROOT t = (f32[2,2], f32[3,2]) tuple(g, s)
}
""", [X.reshape(3, 2), np.array([[2], [0]], I)],
    [X.reshape(3, 2)[[2, 0]], np.array([[0, 2], [2, 3], [8, 10]], F)])

sample("windows", "HloModule w" + SUM + """
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT ge = pred[] compare(a, b), direction=GE }
ENTRY e {
  x = f32[2,3] parameter(0)
  zero = f32[] constant(0)
  w = f32[2,2] reduce-window(x, zero), window={size=1x2 stride=1x2 pad=0_0x0_1}, to_apply=sum
  s = f32[2,3] select-and-scatter(x, w, zero), window={size=1x2 stride=1x2 pad=0_0x0_1}, select=larger, scatter=sum
  ROOT t = (f32[2,2], f32[2,3]) tuple(w, s)
}
""", [X + 1], [np.array([[3, 3], [9, 6]], F), np.array([[0, 3, 3], [0, 9, 6]], F)])

sample("convolution", """
HloModule c
ENTRY e {
  x = f32[1,4,1] parameter(0)
  k = f32[2,1,1] parameter(1)
  ROOT c = f32[1,4,1] convolution(x, k), window={size=2 pad=1_0 rhs_reversal=1}, dim_labels=b0f_0io->b0f
}
""", [np.array([1, 2, 3, 4], F).reshape(1, 4, 1), np.array([10, 1], F).reshape(2, 1, 1)],
    [np.array([10, 21, 32, 43], F).reshape(1, 4, 1)])

sample("asynchronous operations", """
HloModule a
work { p = f32[3] parameter(0)
  ROOT d = f32[3] add(p, p) }
ENTRY e {
  x = f32[3]{0} parameter(0)
  s = ((f32[3]), f32[3], u32[]) async-start(x), calls=work, async_execution_thread="side"
  u = ((f32[3]), f32[3], u32[]) async-update(s)
  d = f32[3] async-done(u)
  cs = (f32[3], f32[3], u32[]) copy-start(d), cross_program_prefetch_index=0
  c = f32[3] copy-done(cs)
  ss = ((f32[3]), f32[2], s32[]) slice-start(c), slice={[1:3]}
  ROOT sd = f32[2] slice-done(ss)
}
""", [np.array([1, 2, 3], F)], [np.array([4, 6], F)])

sample("order and markers", """
HloModule o
ENTRY e {
  x = f32[2] parameter(0)
  t0 = token[] after-all()
  t1 = token[] after-all(t0, t0)
  y = f32[2] add-dependency(x, t1)
  z = f32[2] domain(y), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
  t = (f32[2], f32[2]) tuple(z, x)
  b = (f32[2], f32[2]) opt-barrier(t), control-predecessors={z}
  p = f32[2] get-tuple-element(b), index=0
  n = u32[] partition-id()
  ROOT r = (f32[2], u32[]) tuple(p, n)
}
""", [np.array([1, 2], F)], [np.array([1, 2], F), np.uint32(0)])

sample("written in place", """
HloModule i
ENTRY e {
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  r = f32[] reduce(x, zero), dimensions={0}, to_apply={
    a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT s = add(a, b)
  }
  ROOT y = f32[] multiply(f32[] add(r, f32[] constant(1)), r)
}
""", [np.array([1, 2], F)], [F(12)])

sample("random bits", """
HloModule r
ENTRY e {
  s = u64[2] parameter(0)
  r = (u64[2], u32[2]) rng-bit-generator(s), algorithm=rng_three_fry
  ROOT state = u64[2] get-tuple-element(r), index=0
}
""", [np.array([1, 2], np.uint64)], [np.array([1, 3], np.uint64)])
