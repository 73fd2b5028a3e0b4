"""rng_bit_generator: bits and states as XLA's CPU back end gave them (jaxlib 0.10.2), and the published test vectors."""

from __future__ import annotations

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import from_mlir, i64, u32, u64
from hilo.ir.types import Results, TensorType
from hilo.ops.random import philox4x32, rng_bit_generator, threefry2x32

FROM_XLA = [
    ("THREE_FRY", (0x8306bdf37922e4ff, 0xfffffffffffffffd), "ui32", (), (0x8306bdf37922e4ff, 0xfffffffffffffffe), "0dcfc333"),
    ("THREE_FRY", (0x30fa9ad55ba5b92d, 0x14e0a1e07abfc864), "ui32", (3, 5), (0x30fa9ad55ba5b92d, 0x14e0a1e07abfc86d), "90bf33fc8c1eaabee64f874afcd61257c077d90b3bc7dedaeb2ecbafdf0ac55231eed2ecad0ee472abc48f27a2580ca5c8cb2d7a85cfc52f670bf551"),
    ("THREE_FRY", (0xdc7d1340aae99a37, 0xe064bc32d70b0d8e), "ui64", (3, 5), (0xdc7d1340aae99a37, 0xe064bc32d70b0d9d), "950d41dc8fae38ea3838048503473c81bc6c9d35a19e57c4e7e19ba8d25cdee35af524530522a9f6815f712cc59959fbca62997f1a3949a5554496d491baa35526a98322c36869ceea0554aa63ffa43982361aae6d1f7bb769ee397e27a0c8a77dab82083d8f60cc63194acd48193443c886e2a11b67c9db"),
    ("THREE_FRY", (0x3edc836d44a2361e, 0xfffffffffffffffd), "ui32", (4, 3), (0x3edc836d44a2361e, 0x3), "5547369300e59609aad02342db45a359542b553c41e8618997c5207de3dc3ab311ebfcd00b916c41e23965c25bbfcbb4"),
    ("THREE_FRY", (0xff031be9c20df384, 0xfffffffffffffffd), "ui32", (5,), (0xff031be9c20df384, 0x0), "c2993ea1fdb531a90fba83e10904d14a29a706c4"),
    ("THREE_FRY", (0x6bc18128119739b7, 0xaa3c68567ad60876), "i16", (5,), (0x6bc18128119739b7, 0xaa3c68567ad60879), "06aa7cc390a2628d0376"),
    ("THREE_FRY", (0x5d711db3925befef, 0xfffffffffffffffd), "f32", (5,), (0x5d711db3925befef, 0x0), "5a8c0fae78efd413b360decbb007d1f12c75752c"),
    ("THREE_FRY", (0xa01122fb02e46719, 0xb191441ecece408f), "ui32", (2, 0), (0xa01122fb02e46719, 0xb191441ecece408f), ""),
    ("THREE_FRY", (0x7262556720f250cb, 0x5f31dc7075d31e32), "ui8", (3, 6), (0x7262556720f250cb, 0x5f31dc7075d31e3b), "e72626353c23e7f0725428c2f400e95f1a23"),
    ("PHILOX", (0x21d678f9fa449808, 0xfffffffffffffffd), "ui32", (), (0x21d678f9fa449808, 0xfffffffffffffffe), "1093b57a"),
    ("PHILOX", (0xb0f8bc480d22e535, 0xfffffffffffffffd), "ui32", (5,), (0xb0f8bc480d22e535, 0xffffffffffffffff), "ca2c201918c680f4e264ffebaf23c6d8ae632dc9"),
    ("PHILOX", (0x790602f3074e425b, 0xcccd0f5f470dc57f), "ui32", (2, 0), (0x790602f3074e425b, 0xcccd0f5f470dc57f), ""),
    ("PHILOX", (0xb6d3a54fedb4ccb2, 0xf6d77e52b75ba0e5), "ui8", (3, 6), (0xb6d3a54fedb4ccb2, 0xf6d77e52b75ba0ea), "0450a13a3eefd6c3662cd8d67fceba50db40"),
    ("PHILOX", (0xdc907680825700ca, 0xebf303bf1636d638, 0xef5ff14967d26c11), "ui32", (3, 5), (0xdc907680825700ca, 0xebf303bf1636d63c, 0xef5ff14967d26c11), "ff1ecf02619d412b91f00aa482b319b6c066a5f1ff60d99dbb8209ffa3e6ef7a33a6c498fbd8475f9b8fe22380f116fbf8fb3c3c1d94dea556a5fe20"),
    ("PHILOX", (0xcc942819efc59e95, 0xfffffffffffffffd, 0xfa657eab06660208), "ui32", (4, 3), (0xcc942819efc59e95, 0x0, 0xfa657eab06660209), "c8f9e667678b5325a7260e3820535b456424308a2439a42d5db893c8c3e5fd36527654bae7a9482f8eff75da43c09330"),
    ("PHILOX", (0xcde71f0c67234bbe, 0x4902fbc5b06166d8, 0x3a65238b9a264146), "ui64", (5,), (0xcde71f0c67234bbe, 0x4902fbc5b06166db, 0x3a65238b9a264146), "c40cb81ecb92d59674a79a82721d6235d03ba72d1eb7c723bbf3050bf1fbf778ec69b3c62b2e7bf0"),
    ("PHILOX", (0x6ec08aaa962669a3, 0x45f9f822349b59e9, 0x57dee1d7eeb1a844), "i16", (5,), (0x6ec08aaa962669a3, 0x45f9f822349b59eb, 0x57dee1d7eeb1a844), "c5d905c773d56e97113e"),
    ("DEFAULT", (0xb724873143bc7f6b, 0x7db180df346362de), "ui32", (5,), (0xb724873143bc7f6b, 0x7db180df346362e0), "cb3e04cb63b6ee4476b1e7442df615272a10aa46"),
    ("DEFAULT", (0x92c1700f7c692af9, 0x9b398496a9f3db1e, 0xe04329b7c418135a), "ui64", (), (0x92c1700f7c692af9, 0x9b398496a9f3db1f, 0xe04329b7c418135a), "e145cbf0ccbf9344"),
]


def bits(algorithm, state, dtype, shape):
    state = np.array(state, np.uint64)
    return run_op(rng_bit_generator, state, rng_algorithm=algorithm, type=Results([TensorType(u64, state.shape), TensorType(dtype, shape)]))


@pytest.mark.parametrize(("algorithm", "state", "dtype", "shape", "new", "expected"), FROM_XLA)
def test_bits_and_state_are_xlas(algorithm, state, dtype, shape, new, expected):
    after, got = bits(algorithm, state, from_mlir(dtype), shape)
    assert after.tolist() == list(new)
    assert got.tobytes().hex() == expected


def test_published_vectors():
    """The known answers of the authors' library (20 rounds of Threefry-2x32, 10 of Philox-4x32)."""
    ones, zeros = np.full((1,), 2**64 - 1, np.uint64), np.zeros((1,), np.uint64)
    assert [int(x[0]) for x in threefry2x32(np.uint64(0), zeros)] == [0x6B200159, 0x99BA4EFE]
    assert [int(x[0]) for x in threefry2x32(np.uint64(2**64 - 1), ones)] == [0x1CB996FC, 0xBB002BE7]
    with np.errstate(over="ignore"):
        assert [int(x[0]) for x in philox4x32(np.uint64(0), zeros, zeros)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
        assert [int(x[0]) for x in philox4x32(np.uint64(2**64 - 1), ones, ones)] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
def test_the_state_goes_on_where_it_stopped(algorithm):
    first, a = bits(algorithm, (7, 2**64 - 2), u64, (8,))
    _, b = bits(algorithm, tuple(map(int, first)), u64, (8,))
    if algorithm == "THREE_FRY":  # the counter wraps around; with PHILOX two words of state lose the carry, as in XLA
        _, both = bits(algorithm, (7, 2**64 - 2), u64, (16,))
        np.testing.assert_array_equal(np.concatenate([a, b]), both)
    assert not np.array_equal(a, b)


def test_constraints():
    s, out = TensorType(u64, (2,)), TensorType(u32, (3,))
    good = {"rng_algorithm": "THREE_FRY", "type": Results([s, out])}
    refuses("C1", rng_bit_generator, [s], **{**good, "type": Results([out, out])})
    refuses("C1", rng_bit_generator, [s], **{**good, "type": s})
    three = TensorType(u64, (3,))
    refuses("C2", rng_bit_generator, [three], **{**good, "type": Results([three, out])})
    four = TensorType(u64, (4,))
    refuses("C2", rng_bit_generator, [four], rng_algorithm="PHILOX", type=Results([four, out]))
    refuses("I1", rng_bit_generator, [s], **{**good, "rng_algorithm": "MERSENNE"})
    refuses("I2", rng_bit_generator, [TensorType(i64, (2,))], **good)
