"""rng_bit_generator: bits and states as XLA on CPU gives them (jaxlib 0.10.2), and the published test vectors."""

from __future__ import annotations

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import from_mlir, i64, u32, u64
from hilo.ir.types import Results, TensorType
from hilo.ops.random import philox4x32, rng_bit_generator, threefry2x32

FROM_XLA = [
    (
        "THREE_FRY",
        (0x8306BDF37922E4FF, 0xFFFFFFFFFFFFFFFD),
        "ui32",
        (),
        (0x8306BDF37922E4FF, 0xFFFFFFFFFFFFFFFE),
        "0dcfc333",
    ),
    (
        "THREE_FRY",
        (0x30FA9AD55BA5B92D, 0x14E0A1E07ABFC864),
        "ui32",
        (3, 5),
        (0x30FA9AD55BA5B92D, 0x14E0A1E07ABFC86D),
        "90bf33fc8c1eaabee64f874afcd61257c077d90b3bc7dedaeb2ecbafdf0ac55231eed2ecad0ee472abc48f27a2580ca5c8cb2d7a85cfc52f670bf551",
    ),
    (
        "THREE_FRY",
        (0xDC7D1340AAE99A37, 0xE064BC32D70B0D8E),
        "ui64",
        (3, 5),
        (0xDC7D1340AAE99A37, 0xE064BC32D70B0D9D),
        "950d41dc8fae38ea3838048503473c81bc6c9d35a19e57c4e7e19ba8d25cdee35af524530522a9f6815f712cc59959fbca62997f1a3949a5554496d491baa35526a98322c36869ceea0554aa63ffa43982361aae6d1f7bb769ee397e27a0c8a77dab82083d8f60cc63194acd48193443c886e2a11b67c9db",
    ),
    (
        "THREE_FRY",
        (0x3EDC836D44A2361E, 0xFFFFFFFFFFFFFFFD),
        "ui32",
        (4, 3),
        (0x3EDC836D44A2361E, 0x3),
        "5547369300e59609aad02342db45a359542b553c41e8618997c5207de3dc3ab311ebfcd00b916c41e23965c25bbfcbb4",
    ),
    (
        "THREE_FRY",
        (0xFF031BE9C20DF384, 0xFFFFFFFFFFFFFFFD),
        "ui32",
        (5,),
        (0xFF031BE9C20DF384, 0x0),
        "c2993ea1fdb531a90fba83e10904d14a29a706c4",
    ),
    (
        "THREE_FRY",
        (0x6BC18128119739B7, 0xAA3C68567AD60876),
        "i16",
        (5,),
        (0x6BC18128119739B7, 0xAA3C68567AD60879),
        "06aa7cc390a2628d0376",
    ),
    (
        "THREE_FRY",
        (0x5D711DB3925BEFEF, 0xFFFFFFFFFFFFFFFD),
        "f32",
        (5,),
        (0x5D711DB3925BEFEF, 0x0),
        "5a8c0fae78efd413b360decbb007d1f12c75752c",
    ),
    (
        "THREE_FRY",
        (0xA01122FB02E46719, 0xB191441ECECE408F),
        "ui32",
        (2, 0),
        (0xA01122FB02E46719, 0xB191441ECECE408F),
        "",
    ),
    (
        "THREE_FRY",
        (0x7262556720F250CB, 0x5F31DC7075D31E32),
        "ui8",
        (3, 6),
        (0x7262556720F250CB, 0x5F31DC7075D31E3B),
        "e72626353c23e7f0725428c2f400e95f1a23",
    ),
    (
        "PHILOX",
        (0x21D678F9FA449808, 0xFFFFFFFFFFFFFFFD),
        "ui32",
        (),
        (0x21D678F9FA449808, 0xFFFFFFFFFFFFFFFE),
        "1093b57a",
    ),
    (
        "PHILOX",
        (0xB0F8BC480D22E535, 0xFFFFFFFFFFFFFFFD),
        "ui32",
        (5,),
        (0xB0F8BC480D22E535, 0xFFFFFFFFFFFFFFFF),
        "ca2c201918c680f4e264ffebaf23c6d8ae632dc9",
    ),
    ("PHILOX", (0x790602F3074E425B, 0xCCCD0F5F470DC57F), "ui32", (2, 0), (0x790602F3074E425B, 0xCCCD0F5F470DC57F), ""),
    (
        "PHILOX",
        (0xB6D3A54FEDB4CCB2, 0xF6D77E52B75BA0E5),
        "ui8",
        (3, 6),
        (0xB6D3A54FEDB4CCB2, 0xF6D77E52B75BA0EA),
        "0450a13a3eefd6c3662cd8d67fceba50db40",
    ),
    (
        "PHILOX",
        (0xDC907680825700CA, 0xEBF303BF1636D638, 0xEF5FF14967D26C11),
        "ui32",
        (3, 5),
        (0xDC907680825700CA, 0xEBF303BF1636D63C, 0xEF5FF14967D26C11),
        "ff1ecf02619d412b91f00aa482b319b6c066a5f1ff60d99dbb8209ffa3e6ef7a33a6c498fbd8475f9b8fe22380f116fbf8fb3c3c1d94dea556a5fe20",
    ),
    (
        "PHILOX",
        (0xCC942819EFC59E95, 0xFFFFFFFFFFFFFFFD, 0xFA657EAB06660208),
        "ui32",
        (4, 3),
        (0xCC942819EFC59E95, 0x0, 0xFA657EAB06660209),
        "c8f9e667678b5325a7260e3820535b456424308a2439a42d5db893c8c3e5fd36527654bae7a9482f8eff75da43c09330",
    ),
    (
        "PHILOX",
        (0xCDE71F0C67234BBE, 0x4902FBC5B06166D8, 0x3A65238B9A264146),
        "ui64",
        (5,),
        (0xCDE71F0C67234BBE, 0x4902FBC5B06166DB, 0x3A65238B9A264146),
        "c40cb81ecb92d59674a79a82721d6235d03ba72d1eb7c723bbf3050bf1fbf778ec69b3c62b2e7bf0",
    ),
    (
        "PHILOX",
        (0x6EC08AAA962669A3, 0x45F9F822349B59E9, 0x57DEE1D7EEB1A844),
        "i16",
        (5,),
        (0x6EC08AAA962669A3, 0x45F9F822349B59EB, 0x57DEE1D7EEB1A844),
        "c5d905c773d56e97113e",
    ),
    (
        "DEFAULT",
        (0xB724873143BC7F6B, 0x7DB180DF346362DE),
        "ui32",
        (5,),
        (0xB724873143BC7F6B, 0x7DB180DF346362E0),
        "cb3e04cb63b6ee4476b1e7442df615272a10aa46",
    ),
    (
        "DEFAULT",
        (0x92C1700F7C692AF9, 0x9B398496A9F3DB1E, 0xE04329B7C418135A),
        "ui64",
        (),
        (0x92C1700F7C692AF9, 0x9B398496A9F3DB1F, 0xE04329B7C418135A),
        "e145cbf0ccbf9344",
    ),
]


def bits(algorithm, state, dtype, shape):
    state = np.array(state, np.uint64)
    return run_op(
        rng_bit_generator,
        state,
        rng_algorithm=algorithm,
        type=Results([TensorType(u64, state.shape), TensorType(dtype, shape)]),
    )


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
        assert [int(x[0]) for x in philox4x32(np.uint64(0), zeros, zeros)] == [
            0x6627E8D5,
            0xE169C58D,
            0xBC57AC4C,
            0x9B00DBD8,
        ]
        assert [int(x[0]) for x in philox4x32(np.uint64(2**64 - 1), ones, ones)] == [
            0x408F276D,
            0x41C83B0E,
            0xA20BC7C6,
            0x6D5451FD,
        ]


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
