"""The instructions of x86-64 with AVX-512 that code is made of. Imports nothing.

`VECTOR`: those with a VEX or EVEX prefix that work on vectors or masks, by AT&T's names without a suffix. What ends in
_store goes to memory; in _imm, takes a number where another form takes a register; in _general, _to or _from, comes
from or goes to a general register; in q, for conversions, to or from one of 64 bits. A form is

    prefix (0: none, 1: 66, 2: F3, 3: F2), map (1: 0F, 2: 0F38, 3: 0F3A), opcode, W under VEX, W under EVEX (None: there
    is no such form), unit, how

The unit is what an 8-bit displacement counts in under EVEX: bytes of the memory operand of the 512-bit form (halved for
each shorter form), or, negative, of that of every form. `how`: nothing where there are a destination and two sources,
"rm" where there is one source, "s" where memory is the only one, "mr" where the operand that may be in memory is the
destination, "/n" where the opcode goes on in the field of the first register, "vsib" where the index of the address is
a vector, "l0" and "l1" for masks (one source, two), "dup" where the shortest form reads 8 bytes.

The others (`ARITHMETIC` and what follows): see `encode.general`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Form = tuple[int, int, int, "int | None", "int | None", int, str]

#: By the first three letters of their names. A process uses few of them and reads those alone.
_FORMS: Final = {
    "kad": "kaddb 1 1 4A 0 - 0 l1, kaddw 0 1 4A 0 - 0 l1, kaddd 1 1 4A 1 - 0 l1, kaddq 0 1 4A 1 - 0 l1",
    "kan": (
        "kandb 1 1 41 0 - 0 l1, kandw 0 1 41 0 - 0 l1, kandd 1 1 41 1 - 0 l1, kandq 0 1 41 1 - 0 l1, "
        "kandnb 1 1 42 0 - 0 l1, kandnw 0 1 42 0 - 0 l1, kandnd 1 1 42 1 - 0 l1, kandnq 0 1 42 1 - 0 l1"
    ),
    "kmo": (
        "kmovb 1 1 90 0 - 0 l0, kmovb_store 1 1 91 0 - 0 l0, kmovb_to 1 1 92 0 - 0 l0, kmovb_from 1 1 93 0 - 0 l0, "
        "kmovw 0 1 90 0 - 0 l0, kmovw_store 0 1 91 0 - 0 l0, kmovw_to 0 1 92 0 - 0 l0, kmovw_from 0 1 93 0 - 0 l0, "
        "kmovd 1 1 90 1 - 0 l0, kmovd_store 1 1 91 1 - 0 l0, kmovd_to 3 1 92 0 - 0 l0, kmovd_from 3 1 93 0 - 0 l0, "
        "kmovq 0 1 90 1 - 0 l0, kmovq_store 0 1 91 1 - 0 l0, kmovq_to 3 1 92 1 - 0 l0, kmovq_from 3 1 93 1 - 0 l0"
    ),
    "kno": "knotb 1 1 44 0 - 0 l0, knotw 0 1 44 0 - 0 l0, knotd 1 1 44 1 - 0 l0, knotq 0 1 44 1 - 0 l0",
    "kor": (
        "korb 1 1 45 0 - 0 l1, korw 0 1 45 0 - 0 l1, kord 1 1 45 1 - 0 l1, korq 0 1 45 1 - 0 l1, "
        "kortestb 1 1 98 0 - 0 l0, kortestw 0 1 98 0 - 0 l0, kortestd 1 1 98 1 - 0 l0, kortestq 0 1 98 1 - 0 l0"
    ),
    "ksh": (
        "kshiftlb 1 3 32 0 - 0 l0, kshiftlw 1 3 32 1 - 0 l0, kshiftld 1 3 33 0 - 0 l0, kshiftlq 1 3 33 1 - 0 l0, "
        "kshiftrb 1 3 30 0 - 0 l0, kshiftrw 1 3 30 1 - 0 l0, kshiftrd 1 3 31 0 - 0 l0, kshiftrq 1 3 31 1 - 0 l0"
    ),
    "kte": "ktestb 1 1 99 0 - 0 l0, ktestw 0 1 99 0 - 0 l0, ktestd 1 1 99 1 - 0 l0, ktestq 0 1 99 1 - 0 l0",
    "kun": "kunpckbw 1 1 4B 0 - 0 l1, kunpckwd 0 1 4B 0 - 0 l1, kunpckdq 0 1 4B 1 - 0 l1",
    "kxn": "kxnorb 1 1 46 0 - 0 l1, kxnorw 0 1 46 0 - 0 l1, kxnord 1 1 46 1 - 0 l1, kxnorq 0 1 46 1 - 0 l1",
    "kxo": "kxorb 1 1 47 0 - 0 l1, kxorw 0 1 47 0 - 0 l1, kxord 1 1 47 1 - 0 l1, kxorq 0 1 47 1 - 0 l1",
    "vad": "vaddps 0 1 58 0 0 64, vaddpd 1 1 58 0 1 64, vaddss 2 1 58 0 0 -4, vaddsd 3 1 58 0 1 -8",
    "val": "valignd 1 3 03 - 0 64, valignq 1 3 03 - 1 64",
    "van": "vandps 0 1 54 0 0 64, vandpd 1 1 54 0 1 64, vandnps 0 1 55 0 0 64, vandnpd 1 1 55 0 1 64",
    "vbl": "vblendmps 1 2 65 - 0 64, vblendmpd 1 2 65 - 1 64",
    "vbr": (
        "vbroadcastss 1 2 18 0 0 -4 rm, vbroadcastsd 1 2 19 0 1 -8 rm, vbroadcastf128 1 2 1A 0 - -16 rm, "
        "vbroadcasti128 1 2 5A 0 - -16 rm, vbroadcastf32x2 1 2 19 - 0 -8 rm, vbroadcastf32x4 1 2 1A - 0 -16 rm, "
        "vbroadcastf64x2 1 2 1A - 1 -16 rm, vbroadcastf32x8 1 2 1B - 0 -32 rm, vbroadcastf64x4 1 2 1B - 1 -32 rm, "
        "vbroadcasti32x2 1 2 59 - 0 -8 rm, vbroadcasti32x4 1 2 5A - 0 -16 rm, vbroadcasti64x2 1 2 5A - 1 -16 rm, "
        "vbroadcasti32x8 1 2 5B - 0 -32 rm, vbroadcasti64x4 1 2 5B - 1 -32 rm"
    ),
    "vcm": "vcmpps 0 1 C2 - 0 64, vcmppd 1 1 C2 - 1 64, vcmpss 2 1 C2 - 0 -4, vcmpsd 3 1 C2 - 1 -8",
    "vco": (
        "vcomiss 0 1 2F 0 0 -4 rm, vcomisd 1 1 2F 0 1 -8 rm, vcompressps 1 2 8A - 0 -4 mr, "
        "vcompresspd 1 2 8A - 1 -8 mr"
    ),
    "vcv": (
        "vcvtdq2ps 0 1 5B 0 0 64 rm, vcvtps2dq 1 1 5B 0 0 64 rm, vcvttps2dq 2 1 5B 0 0 64 rm, "
        "vcvtudq2ps 3 1 7A - 0 64 rm, vcvtps2udq 0 1 79 - 0 64 rm, vcvttps2udq 0 1 78 - 0 64 rm, "
        "vcvtqq2ps 0 1 5B - 1 64 rm, vcvtuqq2ps 3 1 7A - 1 64 rm, vcvtdq2pd 2 1 E6 0 0 32 rm, "
        "vcvtudq2pd 2 1 7A - 0 32 rm, vcvtqq2pd 2 1 E6 - 1 64 rm, vcvtuqq2pd 2 1 7A - 1 64 rm, "
        "vcvtpd2dq 3 1 E6 0 1 64 rm, vcvttpd2dq 1 1 E6 0 1 64 rm, vcvtpd2udq 0 1 79 - 1 64 rm, "
        "vcvttpd2udq 0 1 78 - 1 64 rm, vcvtps2qq 1 1 7B - 0 32 rm, vcvttps2qq 1 1 7A - 0 32 rm, "
        "vcvtps2uqq 1 1 79 - 0 32 rm, vcvttps2uqq 1 1 78 - 0 32 rm, vcvtpd2qq 1 1 7B - 1 64 rm, "
        "vcvttpd2qq 1 1 7A - 1 64 rm, vcvtpd2uqq 1 1 79 - 1 64 rm, vcvttpd2uqq 1 1 78 - 1 64 rm, "
        "vcvtps2pd 0 1 5A 0 0 32 rm, vcvtpd2ps 1 1 5A 0 1 64 rm, vcvtss2sd 2 1 5A 0 0 -4, vcvtsd2ss 3 1 5A 0 1 -8, "
        "vcvtph2ps 1 2 13 0 0 32 rm, vcvtps2ph 1 3 1D 0 0 32 mr, vcvtneps2bf16 2 2 72 - 0 64 rm, "
        "vcvtne2ps2bf16 3 2 72 - 0 64, vcvtsi2ss 2 1 2A 0 0 -4, vcvtsi2ssq 2 1 2A 1 1 -8, vcvtusi2ss 2 1 7B - 0 -4, "
        "vcvtusi2ssq 2 1 7B - 1 -8, vcvtss2si 2 1 2D 0 0 -4 rm, vcvtss2siq 2 1 2D 1 1 -4 rm, "
        "vcvtss2usi 2 1 79 - 0 -4 rm, vcvtss2usiq 2 1 79 - 1 -4 rm, vcvttss2si 2 1 2C 0 0 -4 rm, "
        "vcvttss2siq 2 1 2C 1 1 -4 rm, vcvttss2usi 2 1 78 - 0 -4 rm, vcvttss2usiq 2 1 78 - 1 -4 rm, "
        "vcvtsi2sd 3 1 2A 0 0 -4, vcvtsi2sdq 3 1 2A 1 1 -8, vcvtusi2sd 3 1 7B - 0 -4, vcvtusi2sdq 3 1 7B - 1 -8, "
        "vcvtsd2si 3 1 2D 0 0 -8 rm, vcvtsd2siq 3 1 2D 1 1 -8 rm, vcvtsd2usi 3 1 79 - 0 -8 rm, "
        "vcvtsd2usiq 3 1 79 - 1 -8 rm, vcvttsd2si 3 1 2C 0 0 -8 rm, vcvttsd2siq 3 1 2C 1 1 -8 rm, "
        "vcvttsd2usi 3 1 78 - 0 -8 rm, vcvttsd2usiq 3 1 78 - 1 -8 rm"
    ),
    "vdi": "vdivps 0 1 5E 0 0 64, vdivpd 1 1 5E 0 1 64, vdivss 2 1 5E 0 0 -4, vdivsd 3 1 5E 0 1 -8",
    "vdp": "vdpbf16ps 2 2 52 - 0 64",
    "vex": (
        "vexpandps 1 2 88 - 0 -4 rm, vexpandpd 1 2 88 - 1 -8 rm, vextractf128 1 3 19 0 - -16 mr, "
        "vextractf32x4 1 3 19 - 0 -16 mr, vextractf64x2 1 3 19 - 1 -16 mr, vextractf32x8 1 3 1B - 0 -32 mr, "
        "vextractf64x4 1 3 1B - 1 -32 mr, vextracti128 1 3 39 0 - -16 mr, vextracti32x4 1 3 39 - 0 -16 mr, "
        "vextracti64x2 1 3 39 - 1 -16 mr, vextracti32x8 1 3 3B - 0 -32 mr, vextracti64x4 1 3 3B - 1 -32 mr, "
        "vextractps 1 3 17 0 0 -4 mr"
    ),
    "vfi": "vfixupimmps 1 3 54 - 0 64, vfixupimmpd 1 3 54 - 1 64, vfixupimmss 1 3 55 - 0 -4, vfixupimmsd 1 3 55 - 1 -8",
    "vfm": (
        "vfmaddsub132ps 1 2 96 0 0 64, vfmaddsub132pd 1 2 96 1 1 64, vfmaddsub213ps 1 2 A6 0 0 64, "
        "vfmaddsub213pd 1 2 A6 1 1 64, vfmaddsub231ps 1 2 B6 0 0 64, vfmaddsub231pd 1 2 B6 1 1 64, "
        "vfmsubadd132ps 1 2 97 0 0 64, vfmsubadd132pd 1 2 97 1 1 64, vfmsubadd213ps 1 2 A7 0 0 64, "
        "vfmsubadd213pd 1 2 A7 1 1 64, vfmsubadd231ps 1 2 B7 0 0 64, vfmsubadd231pd 1 2 B7 1 1 64, "
        "vfmadd132ps 1 2 98 0 0 64, vfmadd132pd 1 2 98 1 1 64, vfmadd132ss 1 2 99 0 0 -4, vfmadd132sd 1 2 99 1 1 -8, "
        "vfmadd213ps 1 2 A8 0 0 64, vfmadd213pd 1 2 A8 1 1 64, vfmadd213ss 1 2 A9 0 0 -4, vfmadd213sd 1 2 A9 1 1 -8, "
        "vfmadd231ps 1 2 B8 0 0 64, vfmadd231pd 1 2 B8 1 1 64, vfmadd231ss 1 2 B9 0 0 -4, vfmadd231sd 1 2 B9 1 1 -8, "
        "vfmsub132ps 1 2 9A 0 0 64, vfmsub132pd 1 2 9A 1 1 64, vfmsub132ss 1 2 9B 0 0 -4, vfmsub132sd 1 2 9B 1 1 -8, "
        "vfmsub213ps 1 2 AA 0 0 64, vfmsub213pd 1 2 AA 1 1 64, vfmsub213ss 1 2 AB 0 0 -4, vfmsub213sd 1 2 AB 1 1 -8, "
        "vfmsub231ps 1 2 BA 0 0 64, vfmsub231pd 1 2 BA 1 1 64, vfmsub231ss 1 2 BB 0 0 -4, vfmsub231sd 1 2 BB 1 1 -8"
    ),
    "vfn": (
        "vfnmadd132ps 1 2 9C 0 0 64, vfnmadd132pd 1 2 9C 1 1 64, vfnmadd132ss 1 2 9D 0 0 -4, "
        "vfnmadd132sd 1 2 9D 1 1 -8, vfnmadd213ps 1 2 AC 0 0 64, vfnmadd213pd 1 2 AC 1 1 64, "
        "vfnmadd213ss 1 2 AD 0 0 -4, vfnmadd213sd 1 2 AD 1 1 -8, vfnmadd231ps 1 2 BC 0 0 64, "
        "vfnmadd231pd 1 2 BC 1 1 64, vfnmadd231ss 1 2 BD 0 0 -4, vfnmadd231sd 1 2 BD 1 1 -8, "
        "vfnmsub132ps 1 2 9E 0 0 64, vfnmsub132pd 1 2 9E 1 1 64, vfnmsub132ss 1 2 9F 0 0 -4, "
        "vfnmsub132sd 1 2 9F 1 1 -8, vfnmsub213ps 1 2 AE 0 0 64, vfnmsub213pd 1 2 AE 1 1 64, "
        "vfnmsub213ss 1 2 AF 0 0 -4, vfnmsub213sd 1 2 AF 1 1 -8, vfnmsub231ps 1 2 BE 0 0 64, "
        "vfnmsub231pd 1 2 BE 1 1 64, vfnmsub231ss 1 2 BF 0 0 -4, vfnmsub231sd 1 2 BF 1 1 -8"
    ),
    "vfp": (
        "vfpclassps 1 3 66 - 0 64 rm, vfpclasspd 1 3 66 - 1 64 rm, vfpclassss 1 3 67 - 0 -4 rm, "
        "vfpclasssd 1 3 67 - 1 -8 rm"
    ),
    "vga": (
        "vgatherdps 1 2 92 - 0 -4 vsib, vgatherdpd 1 2 92 - 1 -8 vsib, vgatherqps 1 2 93 - 0 -4 vsib, "
        "vgatherqpd 1 2 93 - 1 -8 vsib"
    ),
    "vge": (
        "vgetexpps 1 2 42 - 0 64 rm, vgetexppd 1 2 42 - 1 64 rm, vgetexpss 1 2 43 - 0 -4, vgetexpsd 1 2 43 - 1 -8, "
        "vgetmantps 1 3 26 - 0 64 rm, vgetmantpd 1 3 26 - 1 64 rm, vgetmantss 1 3 27 - 0 -4, "
        "vgetmantsd 1 3 27 - 1 -8"
    ),
    "vin": (
        "vinsertf128 1 3 18 0 - -16, vinsertf32x4 1 3 18 - 0 -16, vinsertf64x2 1 3 18 - 1 -16, "
        "vinsertf32x8 1 3 1A - 0 -32, vinsertf64x4 1 3 1A - 1 -32, vinserti128 1 3 38 0 - -16, "
        "vinserti32x4 1 3 38 - 0 -16, vinserti64x2 1 3 38 - 1 -16, vinserti32x8 1 3 3A - 0 -32, "
        "vinserti64x4 1 3 3A - 1 -32, vinsertps 1 3 21 0 0 -4"
    ),
    "vma": "vmaxps 0 1 5F 0 0 64, vmaxpd 1 1 5F 0 1 64, vmaxss 2 1 5F 0 0 -4, vmaxsd 3 1 5F 0 1 -8",
    "vmi": "vminps 0 1 5D 0 0 64, vminpd 1 1 5D 0 1 64, vminss 2 1 5D 0 0 -4, vminsd 3 1 5D 0 1 -8",
    "vmo": (
        "vmovups 0 1 10 0 0 64 rm, vmovupd 1 1 10 0 1 64 rm, vmovups_store 0 1 11 0 0 64 mr, "
        "vmovupd_store 1 1 11 0 1 64 mr, vmovaps 0 1 28 0 0 64 rm, vmovapd 1 1 28 0 1 64 rm, "
        "vmovaps_store 0 1 29 0 0 64 mr, vmovapd_store 1 1 29 0 1 64 mr, vmovdqu 2 1 6F 0 - 64 rm, "
        "vmovdqa 1 1 6F 0 - 64 rm, vmovdqu_store 2 1 7F 0 - 64 mr, vmovdqa_store 1 1 7F 0 - 64 mr, "
        "vmovdqu8 3 1 6F - 0 64 rm, vmovdqu8_store 3 1 7F - 0 64 mr, vmovdqu16 3 1 6F - 1 64 rm, "
        "vmovdqu16_store 3 1 7F - 1 64 mr, vmovdqu32 2 1 6F - 0 64 rm, vmovdqu32_store 2 1 7F - 0 64 mr, "
        "vmovdqu64 2 1 6F - 1 64 rm, vmovdqu64_store 2 1 7F - 1 64 mr, vmovdqa32 1 1 6F - 0 64 rm, "
        "vmovdqa32_store 1 1 7F - 0 64 mr, vmovdqa64 1 1 6F - 1 64 rm, vmovdqa64_store 1 1 7F - 1 64 mr, "
        "vmovntps_store 0 1 2B 0 0 64 mr, vmovntpd_store 1 1 2B 0 1 64 mr, vmovntdq_store 1 1 E7 0 0 64 mr, "
        "vmovntdqa 1 2 2A 0 0 64 rm, vmovss 2 1 10 0 0 -4 s, vmovsd 3 1 10 0 1 -8 s, vmovss_store 2 1 11 0 0 -4 mr, "
        "vmovsd_store 3 1 11 0 1 -8 mr, vmovd 1 1 6E 0 0 -4 rm, vmovd_general 1 1 7E 0 0 -4 mr, "
        "vmovd_store 1 1 7E 0 0 -4 mr, vmovq 1 1 6E 1 1 -8 rm, vmovq_general 1 1 7E 1 1 -8 mr, "
        "vmovq_load 2 1 7E 0 1 -8 rm, vmovq_store 1 1 D6 0 1 -8 mr, vmovsldup 2 1 12 0 0 64 rm, "
        "vmovshdup 2 1 16 0 0 64 rm, vmovddup 3 1 12 0 1 64 dup, vmovhlps 0 1 12 0 0 -8, vmovlhps 0 1 16 0 0 -8, "
        "vmovlps 0 1 12 0 0 -8, vmovlps_store 0 1 13 0 0 -8 mr, vmovhps 0 1 16 0 0 -8, "
        "vmovhps_store 0 1 17 0 0 -8 mr, vmovlpd 1 1 12 0 1 -8, vmovlpd_store 1 1 13 0 1 -8 mr, "
        "vmovhpd 1 1 16 0 1 -8, vmovhpd_store 1 1 17 0 1 -8 mr, vmovmskps 0 1 50 0 - 0 rm, vmovmskpd 1 1 50 0 - 0 rm"
    ),
    "vmu": "vmulps 0 1 59 0 0 64, vmulpd 1 1 59 0 1 64, vmulss 2 1 59 0 0 -4, vmulsd 3 1 59 0 1 -8",
    "vor": "vorps 0 1 56 0 0 64, vorpd 1 1 56 0 1 64",
    "vpa": (
        "vpaddb 1 1 FC 0 0 64, vpaddw 1 1 FD 0 0 64, vpaddd 1 1 FE 0 0 64, vpaddq 1 1 D4 0 1 64, "
        "vpaddsb 1 1 EC 0 0 64, vpaddsw 1 1 ED 0 0 64, vpaddusb 1 1 DC 0 0 64, vpaddusw 1 1 DD 0 0 64, "
        "vpavgb 1 1 E0 0 0 64, vpavgw 1 1 E3 0 0 64, vpabsb 1 2 1C 0 0 64 rm, vpabsw 1 2 1D 0 0 64 rm, "
        "vpabsd 1 2 1E 0 0 64 rm, vpabsq 1 2 1F - 1 64 rm, vpacksswb 1 1 63 0 0 64, vpackuswb 1 1 67 0 0 64, "
        "vpackssdw 1 1 6B 0 0 64, vpackusdw 1 2 2B 0 0 64, vpand 1 1 DB 0 - 64, vpandd 1 1 DB - 0 64, "
        "vpandq 1 1 DB - 1 64, vpandn 1 1 DF 0 - 64, vpandnd 1 1 DF - 0 64, vpandnq 1 1 DF - 1 64, "
        "vpalignr 1 3 0F 0 0 64"
    ),
    "vpb": (
        "vpblendmb 1 2 66 - 0 64, vpblendmw 1 2 66 - 1 64, vpblendmd 1 2 64 - 0 64, vpblendmq 1 2 64 - 1 64, "
        "vpbroadcastb 1 2 78 0 0 -1 rm, vpbroadcastw 1 2 79 0 0 -2 rm, vpbroadcastd 1 2 58 0 0 -4 rm, "
        "vpbroadcastq 1 2 59 0 1 -8 rm, vpbroadcastb_general 1 2 7A - 0 0 rm, vpbroadcastw_general 1 2 7B - 0 0 rm, "
        "vpbroadcastd_general 1 2 7C - 0 0 rm, vpbroadcastq_general 1 2 7C - 1 0 rm"
    ),
    "vpc": (
        "vpconflictd 1 2 C4 - 0 64 rm, vpconflictq 1 2 C4 - 1 64 rm, vpcmpb 1 3 3F - 0 64, vpcmpw 1 3 3F - 1 64, "
        "vpcmpd 1 3 1F - 0 64, vpcmpq 1 3 1F - 1 64, vpcmpub 1 3 3E - 0 64, vpcmpuw 1 3 3E - 1 64, "
        "vpcmpud 1 3 1E - 0 64, vpcmpuq 1 3 1E - 1 64, vpcmpeqb 1 1 74 - 0 64, vpcmpeqw 1 1 75 - 0 64, "
        "vpcmpeqd 1 1 76 - 0 64, vpcmpeqq 1 2 29 - 1 64, vpcmpgtb 1 1 64 - 0 64, vpcmpgtw 1 1 65 - 0 64, "
        "vpcmpgtd 1 1 66 - 0 64, vpcmpgtq 1 2 37 - 1 64, vpcompressd 1 2 8B - 0 -4 mr, vpcompressq 1 2 8B - 1 -8 mr"
    ),
    "vpd": "vpdpbusd 1 2 50 - 0 64, vpdpwssd 1 2 52 - 0 64",
    "vpe": (
        "vpexpandd 1 2 89 - 0 -4 rm, vpexpandq 1 2 89 - 1 -8 rm, vpermilps 1 2 0C 0 0 64, vpermilpd 1 2 0D 0 1 64, "
        "vpermilps_imm 1 3 04 0 0 64 rm, vpermilpd_imm 1 3 05 0 1 64 rm, vpermb 1 2 8D - 0 64, vpermw 1 2 8D - 1 64, "
        "vpermd 1 2 36 0 0 64, vpermq 1 2 36 - 1 64, vpermps 1 2 16 0 0 64, vpermpd 1 2 16 - 1 64, "
        "vpermq_imm 1 3 00 1 1 64 rm, vpermpd_imm 1 3 01 1 1 64 rm, vpermi2b 1 2 75 - 0 64, vpermi2w 1 2 75 - 1 64, "
        "vpermi2d 1 2 76 - 0 64, vpermi2q 1 2 76 - 1 64, vpermi2ps 1 2 77 - 0 64, vpermi2pd 1 2 77 - 1 64, "
        "vpermt2b 1 2 7D - 0 64, vpermt2w 1 2 7D - 1 64, vpermt2d 1 2 7E - 0 64, vpermt2q 1 2 7E - 1 64, "
        "vpermt2ps 1 2 7F - 0 64, vpermt2pd 1 2 7F - 1 64, vperm2f128 1 3 06 0 - 64, vperm2i128 1 3 46 0 - 64, "
        "vpextrb 1 3 14 0 0 -1 mr, vpextrw_store 1 3 15 0 0 -2 mr, vpextrd 1 3 16 0 0 -4 mr, "
        "vpextrq 1 3 16 1 1 -8 mr, vpextrw 1 1 C5 0 0 0 rm"
    ),
    "vpg": (
        "vpgatherdd 1 2 90 - 0 -4 vsib, vpgatherdq 1 2 90 - 1 -8 vsib, vpgatherqd 1 2 91 - 0 -4 vsib, "
        "vpgatherqq 1 2 91 - 1 -8 vsib"
    ),
    "vpi": "vpinsrb 1 3 20 0 0 -1, vpinsrw 1 1 C4 0 0 -2, vpinsrd 1 3 22 0 0 -4, vpinsrq 1 3 22 1 1 -8",
    "vpl": "vplzcntd 1 2 44 - 0 64 rm, vplzcntq 1 2 44 - 1 64 rm",
    "vpm": (
        "vpmovmskb 1 1 D7 0 - 0 rm, vpmullw 1 1 D5 0 0 64, vpmulld 1 2 40 0 0 64, vpmullq 1 2 40 - 1 64, "
        "vpmuludq 1 1 F4 0 1 64, vpmuldq 1 2 28 0 1 64, vpmulhw 1 1 E5 0 0 64, vpmulhuw 1 1 E4 0 0 64, "
        "vpmulhrsw 1 2 0B 0 0 64, vpmaddwd 1 1 F5 0 0 64, vpmaddubsw 1 2 04 0 0 64, vpmadd52luq 1 2 B4 - 1 64, "
        "vpmadd52huq 1 2 B5 - 1 64, vpminsb 1 2 38 0 0 64, vpminsw 1 1 EA 0 0 64, vpminsd 1 2 39 0 0 64, "
        "vpminsq 1 2 39 - 1 64, vpmaxsb 1 2 3C 0 0 64, vpmaxsw 1 1 EE 0 0 64, vpmaxsd 1 2 3D 0 0 64, "
        "vpmaxsq 1 2 3D - 1 64, vpminub 1 1 DA 0 0 64, vpminuw 1 2 3A 0 0 64, vpminud 1 2 3B 0 0 64, "
        "vpminuq 1 2 3B - 1 64, vpmaxub 1 1 DE 0 0 64, vpmaxuw 1 2 3E 0 0 64, vpmaxud 1 2 3F 0 0 64, "
        "vpmaxuq 1 2 3F - 1 64, vpmovm2b 2 2 28 - 0 0 rm, vpmovm2w 2 2 28 - 1 0 rm, vpmovm2d 2 2 38 - 0 0 rm, "
        "vpmovm2q 2 2 38 - 1 0 rm, vpmovb2m 2 2 29 - 0 0 rm, vpmovw2m 2 2 29 - 1 0 rm, vpmovd2m 2 2 39 - 0 0 rm, "
        "vpmovq2m 2 2 39 - 1 0 rm, vpmovsxbw 1 2 20 0 0 32 rm, vpmovsxbd 1 2 21 0 0 16 rm, vpmovsxbq 1 2 22 0 0 8 rm, "
        "vpmovsxwd 1 2 23 0 0 32 rm, vpmovsxwq 1 2 24 0 0 16 rm, vpmovsxdq 1 2 25 0 0 32 rm, "
        "vpmovzxbw 1 2 30 0 0 32 rm, vpmovzxbd 1 2 31 0 0 16 rm, vpmovzxbq 1 2 32 0 0 8 rm, "
        "vpmovzxwd 1 2 33 0 0 32 rm, vpmovzxwq 1 2 34 0 0 16 rm, vpmovzxdq 1 2 35 0 0 32 rm, "
        "vpmovwb 2 2 30 - 0 32 mr, vpmovdb 2 2 31 - 0 16 mr, vpmovqb 2 2 32 - 0 8 mr, vpmovdw 2 2 33 - 0 32 mr, "
        "vpmovqw 2 2 34 - 0 16 mr, vpmovqd 2 2 35 - 0 32 mr, vpmovswb 2 2 20 - 0 32 mr, vpmovsdb 2 2 21 - 0 16 mr, "
        "vpmovsqb 2 2 22 - 0 8 mr, vpmovsdw 2 2 23 - 0 32 mr, vpmovsqw 2 2 24 - 0 16 mr, vpmovsqd 2 2 25 - 0 32 mr, "
        "vpmovuswb 2 2 10 - 0 32 mr, vpmovusdb 2 2 11 - 0 16 mr, vpmovusqb 2 2 12 - 0 8 mr, "
        "vpmovusdw 2 2 13 - 0 32 mr, vpmovusqw 2 2 14 - 0 16 mr, vpmovusqd 2 2 15 - 0 32 mr"
    ),
    "vpo": (
        "vpor 1 1 EB 0 - 64, vpord 1 1 EB - 0 64, vporq 1 1 EB - 1 64, vpopcntb 1 2 54 - 0 64 rm, "
        "vpopcntw 1 2 54 - 1 64 rm, vpopcntd 1 2 55 - 0 64 rm, vpopcntq 1 2 55 - 1 64 rm"
    ),
    "vpr": (
        "vprold 1 1 72 - 0 64 /1, vprolq 1 1 72 - 1 64 /1, vprord 1 1 72 - 0 64 /0, vprorq 1 1 72 - 1 64 /0, "
        "vprolvd 1 2 15 - 0 64, vprolvq 1 2 15 - 1 64, vprorvd 1 2 14 - 0 64, vprorvq 1 2 14 - 1 64"
    ),
    "vps": (
        "vpsubb 1 1 F8 0 0 64, vpsubw 1 1 F9 0 0 64, vpsubd 1 1 FA 0 0 64, vpsubq 1 1 FB 0 1 64, "
        "vpsubsb 1 1 E8 0 0 64, vpsubsw 1 1 E9 0 0 64, vpsubusb 1 1 D8 0 0 64, vpsubusw 1 1 D9 0 0 64, "
        "vpsadbw 1 1 F6 0 0 64, vpsllw 1 1 F1 0 0 -16, vpslld 1 1 F2 0 0 -16, vpsllq 1 1 F3 0 1 -16, "
        "vpsllw_imm 1 1 71 0 0 64 /6, vpslld_imm 1 1 72 0 0 64 /6, vpsllq_imm 1 1 73 0 1 64 /6, "
        "vpsrlw 1 1 D1 0 0 -16, vpsrld 1 1 D2 0 0 -16, vpsrlq 1 1 D3 0 1 -16, vpsrlw_imm 1 1 71 0 0 64 /2, "
        "vpsrld_imm 1 1 72 0 0 64 /2, vpsrlq_imm 1 1 73 0 1 64 /2, vpsraw 1 1 E1 0 0 -16, vpsrad 1 1 E2 0 0 -16, "
        "vpsraq 1 1 E2 - 1 -16, vpsraw_imm 1 1 71 0 0 64 /4, vpsrad_imm 1 1 72 0 0 64 /4, "
        "vpsraq_imm 1 1 72 - 1 64 /4, vpslldq 1 1 73 0 0 64 /7, vpsrldq 1 1 73 0 0 64 /3, vpsllvw 1 2 12 - 1 64, "
        "vpsllvd 1 2 47 0 0 64, vpsllvq 1 2 47 1 1 64, vpsrlvw 1 2 10 - 1 64, vpsrlvd 1 2 45 0 0 64, "
        "vpsrlvq 1 2 45 1 1 64, vpsravw 1 2 11 - 1 64, vpsravd 1 2 46 0 0 64, vpsravq 1 2 46 - 1 64, "
        "vpshldw 1 3 70 - 1 64, vpshldd 1 3 71 - 0 64, vpshldq 1 3 71 - 1 64, vpshrdw 1 3 72 - 1 64, "
        "vpshrdd 1 3 73 - 0 64, vpshrdq 1 3 73 - 1 64, vpshufb 1 2 00 0 0 64, vpshufd 1 1 70 0 0 64 rm, "
        "vpshufhw 2 1 70 0 0 64 rm, vpshuflw 3 1 70 0 0 64 rm, vpscatterdd 1 2 A0 - 0 -4 vsib, "
        "vpscatterdq 1 2 A0 - 1 -8 vsib, vpscatterqd 1 2 A1 - 0 -4 vsib, vpscatterqq 1 2 A1 - 1 -8 vsib"
    ),
    "vpt": (
        "vpternlogd 1 3 25 - 0 64, vpternlogq 1 3 25 - 1 64, vptestmb 1 2 26 - 0 64, vptestmw 1 2 26 - 1 64, "
        "vptestmd 1 2 27 - 0 64, vptestmq 1 2 27 - 1 64, vptestnmb 2 2 26 - 0 64, vptestnmw 2 2 26 - 1 64, "
        "vptestnmd 2 2 27 - 0 64, vptestnmq 2 2 27 - 1 64, vptest 1 2 17 0 - 64 rm"
    ),
    "vpu": (
        "vpunpcklbw 1 1 60 0 0 64, vpunpcklwd 1 1 61 0 0 64, vpunpckldq 1 1 62 0 0 64, vpunpcklqdq 1 1 6C 0 1 64, "
        "vpunpckhbw 1 1 68 0 0 64, vpunpckhwd 1 1 69 0 0 64, vpunpckhdq 1 1 6A 0 0 64, vpunpckhqdq 1 1 6D 0 1 64"
    ),
    "vpx": "vpxor 1 1 EF 0 - 64, vpxord 1 1 EF - 0 64, vpxorq 1 1 EF - 1 64",
    "vra": "vrangeps 1 3 50 - 0 64, vrangepd 1 3 50 - 1 64, vrangess 1 3 51 - 0 -4, vrangesd 1 3 51 - 1 -8",
    "vrc": "vrcp14ps 1 2 4C - 0 64 rm, vrcp14pd 1 2 4C - 1 64 rm, vrcp14ss 1 2 4D - 0 -4, vrcp14sd 1 2 4D - 1 -8",
    "vre": "vreduceps 1 3 56 - 0 64 rm, vreducepd 1 3 56 - 1 64 rm, vreducess 1 3 57 - 0 -4, vreducesd 1 3 57 - 1 -8",
    "vrn": (
        "vrndscaleps 1 3 08 - 0 64 rm, vrndscalepd 1 3 09 - 1 64 rm, vrndscaless 1 3 0A - 0 -4, "
        "vrndscalesd 1 3 0B - 1 -8"
    ),
    "vro": "vroundps 1 3 08 0 - 64 rm, vroundpd 1 3 09 0 - 64 rm, vroundss 1 3 0A 0 - -4, vroundsd 1 3 0B 0 - -8",
    "vrs": (
        "vrsqrt14ps 1 2 4E - 0 64 rm, vrsqrt14pd 1 2 4E - 1 64 rm, vrsqrt14ss 1 2 4F - 0 -4, "
        "vrsqrt14sd 1 2 4F - 1 -8"
    ),
    "vsc": (
        "vscalefps 1 2 2C - 0 64, vscalefpd 1 2 2C - 1 64, vscalefss 1 2 2D - 0 -4, vscalefsd 1 2 2D - 1 -8, "
        "vscatterdps 1 2 A2 - 0 -4 vsib, vscatterdpd 1 2 A2 - 1 -8 vsib, vscatterqps 1 2 A3 - 0 -4 vsib, "
        "vscatterqpd 1 2 A3 - 1 -8 vsib"
    ),
    "vsh": (
        "vshufps 0 1 C6 0 0 64, vshufpd 1 1 C6 0 1 64, vshuff32x4 1 3 23 - 0 64, vshuff64x2 1 3 23 - 1 64, "
        "vshufi32x4 1 3 43 - 0 64, vshufi64x2 1 3 43 - 1 64"
    ),
    "vsq": "vsqrtps 0 1 51 0 0 64 rm, vsqrtpd 1 1 51 0 1 64 rm, vsqrtss 2 1 51 0 0 -4, vsqrtsd 3 1 51 0 1 -8",
    "vsu": "vsubps 0 1 5C 0 0 64, vsubpd 1 1 5C 0 1 64, vsubss 2 1 5C 0 0 -4, vsubsd 3 1 5C 0 1 -8",
    "vuc": "vucomiss 0 1 2E 0 0 -4 rm, vucomisd 1 1 2E 0 1 -8 rm",
    "vun": "vunpcklps 0 1 14 0 0 64, vunpcklpd 1 1 14 0 1 64, vunpckhps 0 1 15 0 0 64, vunpckhpd 1 1 15 0 1 64",
    "vxo": "vxorps 0 1 57 0 0 64, vxorpd 1 1 57 0 1 64",
}


class _Forms(dict[str, Form]):
    """Forms by name, read from the table when they are first asked for."""

    def __missing__(self, name: str) -> Form:
        entry = _entry(name)
        if not entry:
            raise KeyError(name)
        _, pp, space, opcode, vex, evex, unit, *how = entry.split(" ")
        form = self[name] = (
            int(pp), int(space), int(opcode, 16), None if vex == "-" else int(vex), None if evex == "-" else int(evex),
            int(unit), how[0] if how else "",
        )  # fmt: skip
        return form

    def __contains__(self, name: Any) -> bool:
        return bool(_entry(name))

    def names(self) -> Iterator[str]:
        """All that there are."""
        return (entry.partition(" ")[0] for group in _FORMS.values() for entry in group.split(", "))


def _entry(name: str) -> str:
    """What the table says of an instruction, "" if it is not there. (No name is the end of another.)"""
    group = _FORMS.get(name[:3], "")
    at = group.find(name + " ")
    return group[at:].partition(",")[0] if at >= 0 else ""


VECTOR: Final = _Forms()
#: Those that have another form, called name_imm, for a number in the place of their last register.
BY_NUMBER: Final = frozenset((
    "vpsllw", "vpslld", "vpsllq", "vpsrlw", "vpsrld", "vpsrlq", "vpsraw", "vpsrad", "vpsraq", "vpermilps", "vpermilpd",
    "vpermq", "vpermpd",
))  # fmt: skip
#: Those whose results are half as long as their operands.
HALF_RESULTS: Final = (
    "vcvtpd2ps", "vcvtpd2dq", "vcvttpd2dq", "vcvtpd2udq", "vcvttpd2udq", "vcvtqq2ps", "vcvtuqq2ps", "vcvtneps2bf16",
)  # fmt: skip
#: What EVEX calls an instruction that is without a width of lanes under VEX; with masks it depends on that.
WIDE_NAMES: Final = {
    "vpand": "vpandd", "vpandn": "vpandnd", "vpor": "vpord", "vpxor": "vpxord", "vmovdqu": "vmovdqu64",
    "vmovdqa": "vmovdqa64", "vmovdqu_store": "vmovdqu64_store", "vmovdqa_store": "vmovdqa64_store",
    "vextractf128": "vextractf32x4", "vextracti128": "vextracti32x4", "vinsertf128": "vinsertf32x4",
    "vinserti128": "vinserti32x4",
}  # fmt: skip

ARITHMETIC: Final = {"add": 0, "or": 1, "adc": 2, "sbb": 3, "and": 4, "sub": 5, "xor": 6, "cmp": 7}
SHIFTS: Final = {"rol": 0, "ror": 1, "shl": 4, "shr": 5, "sar": 7}
#: One operand: the opcode, and what the field of the register holds.
UNARY: Final = {
    "not": (0xF7, 2), "neg": (0xF7, 3), "mul": (0xF7, 4), "imul1": (0xF7, 5), "div": (0xF7, 6), "idiv": (0xF7, 7),
    "inc": (0xFF, 0), "dec": (0xFF, 1),
}  # fmt: skip
#: Destination and source: the prefix, the opcode.
PAIRS: Final = {
    "imul": (b"", b"\x0f\xaf"), "movzb": (b"", b"\x0f\xb6"), "movzw": (b"", b"\x0f\xb7"), "movsb": (b"", b"\x0f\xbe"),
    "movsw": (b"", b"\x0f\xbf"), "movsl": (b"", b"\x63"), "bsf": (b"", b"\x0f\xbc"), "bsr": (b"", b"\x0f\xbd"),
    "popcnt": (b"\xf3", b"\x0f\xb8"), "tzcnt": (b"\xf3", b"\x0f\xbc"), "lzcnt": (b"\xf3", b"\x0f\xbd"),
    "lea": (b"", b"\x8d"),
}  # fmt: skip
#: Three operands under VEX: prefix, map, opcode.
TRIPLES: Final = {
    "andn": (0, 2, 0xF2), "bzhi": (0, 2, 0xF5), "shlx": (1, 2, 0xF7), "sarx": (2, 2, 0xF7), "shrx": (3, 2, 0xF7),
    "bextr": (0, 2, 0xF7), "pdep": (3, 2, 0xF5), "pext": (2, 2, 0xF5), "mulx": (3, 2, 0xF6),
}  # fmt: skip
CONDITIONS: Final = {
    "o": 0, "no": 1, "b": 2, "c": 2, "ae": 3, "nc": 3, "e": 4, "z": 4, "ne": 5, "nz": 5, "be": 6, "a": 7, "s": 8,
    "ns": 9, "p": 10, "np": 11, "l": 12, "ge": 13, "le": 14, "g": 15,
}  # fmt: skip
#: Whole instructions.
PLAIN: Final = {
    "ret": b"\xc3", "cdq": b"\x99", "cltd": b"\x99", "cqo": b"\x48\x99", "cqto": b"\x48\x99", "ud2": b"\x0f\x0b",
    "leave": b"\xc9", "mfence": b"\x0f\xae\xf0", "sfence": b"\x0f\xae\xf8", "lfence": b"\x0f\xae\xe8",
    "pause": b"\xf3\x90", "rep_movsb": b"\xf3\xa4", "rep_stosb": b"\xf3\xaa", "rep_movsq": b"\xf3\x48\xa5",
    "rep_stosq": b"\xf3\x48\xab",
    "vzeroupper": b"\xc5\xf8\x77", "cld": b"\xfc", "nop": b"\x90",
}  # fmt: skip
#: Fetching a line of memory: the opcode, and what the field of the register holds.
FETCHES: Final = {
    "prefetcht0": (0x18, 1), "prefetcht1": (0x18, 2), "prefetcht2": (0x18, 3), "prefetchnta": (0x18, 0),
    "prefetchw": (0x0D, 1),
}  # fmt: skip
