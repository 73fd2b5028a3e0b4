# ruff: noqa: E501  (a program is quoted as it is written)
"""A program as jaxlib 0.10.2 writes it: MLIR bytecode of StableHLO (versions 0 and 6), and portable artifacts.

`ARTIFACTS` holds the files compressed and in base 85: `zlib.decompress(base64.b85decode(text))`.
"""

from __future__ import annotations

import base64
import zlib

PROGRAM = """\
module @sample attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<2x3xf32> {mhlo.sharding = "{replicated}"}, %n: tensor<i32>, %q: tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> (tensor<2xf32> {jax.result_info = "r"}, tensor<i32>, tensor<2x2xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %bits = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %small = stablehlo.constant dense<[-8, 7, 3]> : tensor<3xi4>
    %half = stablehlo.constant dense<[1.5, 0xFF80, -0.0]> : tensor<3xbf16>
    %pair = stablehlo.constant dense<[(1.0, -2.0), (0.0, 3.0)]> : tensor<2xcomplex<f32>>
    %e = stablehlo.exponential %x : tensor<2x3xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %w:2 = stablehlo.while(%i = %one, %a = %s) : tensor<i32>, tensor<2xf32>
      cond {
        %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %b = stablehlo.add %a, %s : tensor<2xf32>
        stablehlo.return %j, %b : tensor<i32>, tensor<2xf32>
      }
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    %f:2 = call @other(%w#1, %n) : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i32>)
    %t = stablehlo.custom_call @mark(%d) {backend_config = "x", mhlo.frontend_attributes = {a = "b"}} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %f#0, %w#0, %t : tensor<2xf32>, tensor<i32>, tensor<2x2xf32>
  }
  func.func private @other(%x: tensor<2xf32>, %n: tensor<i32>) -> (tensor<2xf32>, tensor<i32>) {
    %p = stablehlo.slice %x [0:2:1] : (tensor<2xf32>) -> tensor<2xf32>
    return %p, %n : tensor<2xf32>, tensor<i32>
  }
}
"""
ARTIFACTS = {
    "bytecode 0": (
        "c-l=;4{IDn6rZ`5m+3Gp%et(?u^h*79LEuoG#(+uP|{LL32g{%DW#Nh?A>iHWA^sW-MuuS6eA)cA|fIpB2q*|L_|bHM68q|MMV4}"
        "`Vs1zyQDa?Z)V^7y+6NsGuv1Hz0S9<Ze4$=y>xcz?7$R^uLusvLC};61ILw~ALw#effq`DxA+sKd}T-5_e13>zpeDtFkAgPiBD^r"
        "rav9k=|>~<{ig5l(4V4Ei_ZMjH08|2?&!3u*2r6~FI=r%cf+@Ev#Nx0OaBP0Vomd46*$(hflX}H9q>4t4bAmB$qrySloed?T*O7q"
        "0YKFoYH@i*t~(pJ%tccOfYt)8VB4wSDi>{QSY5+4T*nPOr#Vs=)CK7}7o93@YTgzkl)T*mvAuKc#!U||*wUqw(s<Eo>{Pp?`D&o~"
        "nxagrBo9d*6OUd)$Qe@+l4=@U@~JAzq>dUspytX#lZF;&1ZeJ5NW0%CJC8PxpRr@jT?@b72y2WTZ&L81S<Un3HTOcz{Q%%?4=+<A"
        "%7E|v{{9EJg;zK}{X_E>VIO~j+tSs1p$y{T=U;sJ)z`R#*YF13#9IL0e2cg7j^>NRewo<UDw@|xEVEz!{Pi!qiyh5FvQ+#KJ@)Km"
        "C{Aw&(4)%`0##^PO1oo-(y@y~UYg^jQsoIgk0Jn^fJ<6yBz1~uppe`Xz!f6hGH_lKK88G)JD|tuRW(5pymK`H^)(^y@Vj0|LL7mR"
        "us^Wat3&W5+{-~rcyI(|32(dxp*Q~~NZ`K4w*b%=_I^>&RPzXep1m_i{DT+Yp<k4Nv@rJ}2*qzdLlf(SKZYhqcWPDhKiDTI)%=f?"
        "tr0kLKVh?_#fR?#g;5JW{m8N}Ls@+H87K&G?t4+uHSjKNPAkJ@zU7KrSLiA^&fTW7&eIQPFQ17PLd3SJW7VxMYOhl9T!pnDtORb$"
        "saAXky>i)c%Z~Jw>jui}PE1mml<iK^9?OfUo5Xv`hz&>mNfNUxE+$#ZdQp<F-Y6wJEm+j=vpg}qn8k<VQ5vU(i4t<{Psns{&rn={"
        "RCES$8fOIbCV4R$c205($59ruMRpJ+lbGd4!%i9v<7xTAjM7eVG@h9cOm4a+F~t!Z6?<{UhQw<roeVpap)l4tXL&RnQ@JP`bfTij"
        "@|jb<7iE2u4%q!H9uv{1i2DzSV1DBCN_4nH+9WADCfyw|${kS)#*;2NvvFn)D1s$sXskn@PMX`+WdGMP)2F>}hH;utsn{bwS3AVB"
        "8&j!q7Wd55Lhai%gJ~<{n02Gxew_ACt%p;4hiVMsV%Cvil<m)svzv|5!a7^_raLL9aKyT&&78GtrkI>6^$iuZ{bBzB40kJt"
    ),
    "bytecode 6": (
        "c-lQv;fmWv5Z>`<ZnIs45R1A9VT>`tnB(q}nBzE(aH&gugyy&;rIZqik!{_b8e4W{DZMm=UMZ!7Qu?Fx0r~=chCqLo{_Shz5z>);"
        "WVN$9JKxMVJ0t1z;oB$f>B9$4?)G<Y@7})1N&$Tdq?&*pN@*+wQOk6?+k5?kBmDP|9=z5@>%K8Yd)ipm^?IqTZ0y&FF)e<KiA>j="
        "t<SoiYp=~9x8JId(DRJ+to6L3+Q)QTT57McyG1Pv!9D`DJ1+VlHp7BFWI03h4Rw5vD7JtIG9p53wx~-zw+S+?kKG<^(+=&?9SbDg"
        "7WFOH#=;c+QBB*pp{;fCKE-}u;XrfDKFgmhf5%d7AQ{D=V6Cb!Hb@q96kB;qq6N1Zhwhu>>v!VXf)~Y6TZrppc7C&AzJK3>A6YQW"
        "Z$qG8f3wgF6yIn&L|lAB`-rQG4(O1M=$?fg_S@row3`+>EU~c=@!m8M`QqKp&;UqCJ~v59(h+AyRqqs$a_dDAG#qF&ny=}76a(l6"
        "pm=SwbT}p^slb;Anwtkap)CzX5IFxK!DH)zbpGOAD}1zv()j?fb0E#f_(|tPsKKX%QjO1Kje{C|rqHOt7aFY^JasWtgOP`kKTLdN"
        "+&o8vNJg?QogI{#JpSB--a?cF=sJuBA5K^$6{s3VEnN`}e+sZm9d`H`yQsX4S#N#M7w#y%^#jMnf$RK8-JTs@Skwd{htI;gq7cKA"
        "m-7fUM&!JbP20vt`%UTW)%@}R4}~{8ZXuUQ&PUvXEmlB$=NxlGsPB84+ELT%x#WkT>xHi3KfnvLKd!P_ndRcV$|qt~CgWLpIa`SN"
        "Vp`2oQKV&6<YJP{W@56)8P7|ROs8Ts%O<Hvua=8E&C4vAvFo&A)3=uy$4wXI=pxP2f`Li3Di`z74aa<$6sgz|i}Erp#GG^O=GA<}"
        ")-o$IP9avwe907RXmyzs(=5LbFN<`^DU&jtz7k(2SGz^Js%GUV%g+~rc@i#RS&i96EQ{<p`)vr$i$z|h`E-<&Ws!}mGF^#8jKvj)"
        "6wk!17j4=Gx8H`7?WgzvPw_E+j$h(e2&m++@w<dy{!x$t`0(}x)Wd~4{8ldH(LMD)zIwo&"
    ),
    "portable 0.9.0": (
        "c-nPS|7+Z27|+|MPv3<QLJ0BYI6^p%a)i>}%27%gqZ?z)v5m5oF~%4ncbDG1HkaJ;<<>HW6A=*+5m7lt8AC)wL{vmX#K{m55fKp)"
        "5fKr8^iP;i?%LrO_U7JuzI~qW$+@$CU0|De(2l~#&u;jm!%J&RhZW`_0|p2cu4=krTDGWE9k?*_XOoRJ&C<$aSyj!@tQI|%Ri7yS"
        "cgVbt)vQhJ;7m-_lEQ|jH8n$&5nEy!S8Fz1*Qz!)_QeTdV8EhbaYG2}2)8%|XmFQv%`#?QJ%ldS1hZGLj`P?+4;KUzYjigNMTJ*!"
        "(PW5C!2m#0U)SE&-{l_}9}9+@<gxaNKIV6fPX%jny5!jMfiHg6{Cs&2m$8K_g00wst!m^!Jl>^ypJLq?j8}<%A(&br`lVo6DSsuH"
        "?hyT2Fr$>e5zMR#X4wFj_i&X8tAOU;4fZ<UhIe~=xQ0jYD6Zpi!92nY?%)Z*7Ajz6KNLS+|7mx8<L8^dJUM=9{PY-4;we0hXYd?u"
        ";CbA{i-IjuZB44J<_K1&J8uEL^!v+y;3d2)Sd}!61x#nIVKQZUoGb1E1OCSC+d91YmUGqd>+U?7%7gs_{Jqlj!G})Zbez!X)$5KV"
        "|CxP%VwD3{RVM`0GPr94x)pwigIm?_t>1c}+;W|oqTE_1<GrcJv15SWeJ_Bf1<tlJK&Hd5zd4C>O{I;pnHi7OJW#pnG47$Nmwzhv"
        "0Ih|0@L`EMcRbK(VxZ5{ZIFj&at%z5pjS;qpr4IEj?D6ym>mH!)3G@)RW)lahx#hlR$<LN0<eA*RDcu5X<2aUB+wGhoCaFy#yOw`"
        "Zk`86pSuVeFhk%a3T$x>Ttk%}K8K*v_ky#O(R}PmnOC*d(hMeA75>VLu!wcCzXlCZjfs}eJqLhwmCrp-@Oc|&U%-ZEad{PVWX$Ht"
        "cG*A$1b^ll=upMkXSpM4sySbuWX1+~8gDJoN6K(^g}`&fFy(zML)6eTG^|w}eWB_$Ypt4BcPqx~a(#7Kn2uw3uI<>Cj>0uv%XTf("
        "uq%dUwhI~MGFC?YC{YGUw}?Welf+pb#JN9OR?;vp(zxV;Znq>`McgTA7RgRnGU3iJiNiRTK{R#f7E{CZzKkYJH_8287>DT;(Fvj{"
        "EwVfr_z%ToFbvX(!=f?@q9RnX-GLtmgHQ?5o*(3SnoZK@GKu|scNkK#Y+qkOM>3Ob8OeNC8BjY*aWU{IWG+hwf&_yhbr;Ej%zYVm"
        "seV%C1o(%P$}Z8a9E5Q;@rwGH-wyIlU&cNEKYAKeo(5FUzfHq5?8uTW0b8=Cq>qS^J~~D@m5>@AN`DllrA}!Fo$WC09t54tjjHd3"
        "`E*DVm(n~K7I`r3xgTVHMlJc_)>hcbr*qj#DQ6j}9Gz?zIdz;2X+5Nhg59LZNiK4V;vcAkNCp|fXy8SZKSUkuY_g20AT#Q_D`^B}"
        "1xk|l!*rT9>j!C<+Ei|&;gH^*AP>7Yl_!ForTwTf-bxe#2lPG;i#9=MlyXEkWrwuswh}09<!=V^ny~"
    ),
    "portable 0.11.0": (
        "c-nPS|BKsX7|(mpJ@+nz5JHGArG!w*QNnT8m2w<ojN2Gvj%^&<F~%4pq;0N!y)^0arQ0!v6A=*+5m71Q7(+xvL{vmX#K{m55fKp)"
        "5fKr8^iP;i+PmQw_NH&2Z=dITa`wz$=V3DsI#KxenGJt@aHZ8+IjArX88Seqa8=U{)3QaS>cIKAKbvf#X_i(V%c^RIX0_?Dtol^("
        "zeDCdtY&R$`)6vZmJ~KLt*IHJjMx^lxLUL6x>mKZu_sOm0|S-~iyJ~%hq=WmK!dxSYnCzh>H&1ICYZg7bzH;-dblK*I7D{?P*ivo"
        "mraJ)6bt|~^>yuS{ayZ%@v&gYNuFq*=o5a&_*Aeqr%R4)ANcZT&CgrA*uplh3btwswx*E>@pzZ+eTsEoFkU74g<xuh=$C?NrTmp("
        "x<mA9!HiP=MliD~m}LW8+Ql_0tOA;UH`wid8{X~j;vqbYM{pgF3FZ-Icn6OQwp0Nt`=R*p+D|)^8$aLt<;lrYlcy(m0#D*8JdI~@"
        "1JB_mUJz`VYHLz$HAk>I-9-!VrQcuv125tw!K$QjEMPiw4U;Le<6L%^81Of4-`3&Hx11}EUw0SLR37Xd;O~{D4?c7Pr|X1Hzg~AF"
        "`Ooe76RYgAsyZd0mcd;c(5>(T9NemYZ~fK-<(BKz6y?@B8Sl+JjvfX4?t1|=EpWD-Au=6){mn_7t14}j&CPkN=7Gvpk8uxGz5G+T"
        "2WTz5gAYs8x#NLO69avbZi75LlWSmd1ifk^0{v_Ra%7gr#QYeLnU2kYsj69XIn>v<wg!jH!vO0?Km|B{jFtr_PXI09^eLc~Zkz>L"
        ";O04S^o0wc0W$<%q`(&Ez%^9q;R^_A`L)bbM)R@DWnR@*OEZ{gRro6}!ZOy${u(quHKtm=@EicvRle{%!53|ue*qhw#pM;ykujSm"
        "+hqe45d4{|phFespXH9IspevRni(75X}rBeA1TB6RRS*%!<6^63{gYV(6Cl@^rfoXthH-i-K`jFt@>I^n2uw3uI<>Cj>0uv%XTf("
        "uq%dUb_yBgGFHZeC{cz<uZTjWo5Wcj#JN9iDQTD&X<TwauUC?-BJP$ni)1$}neh53iNiRTK{Rvd6*I%NfsCe1FUkFW7>DT$(G8**"
        "EwVfr`VYlqI119K!?H3Cq9RnXouMBG!%zv*z8~aynoZN^GKu|sXB1MhY)@Z8$1;;08OeM{8B#kdaWV8MWG+hwf&{}6br;E@%zYX6"
        "sD4uB1o(%P${x|49ENc=^@;|W-wE>WK*oLlKYAKeo(5FUzfGew?8=fY0b8=Kq>qS^J~~D@m5>@ANq-!srB3Mt-R&^$?FXICjjHd5"
        "`D{p2m(n~O6?ri0c@SiNMlJc_)>hcfXLH#~DQ6j}9G&bGIdz<jXg#Egf}NzuNiK4V;_s`2NCp|fXy8SZKSb^CY`Tn@AT#Q_Cusy_"
        "1xk_+!gQ848w6>O+Ei|&;fUUzAP;*tl_!GhD|=C8yp<>f4(NRx6&-@mDCL-N%5~DF+e)Bxl)nKv_L|-"
    ),
    "portable 0.13.0": (
        "c-nPS|BD+{5P$C`bFa&?EX%S!LRgj%j<6iL^a#gMO1YL&YH7>S9;K90mQAvkthd>u`z7sBiWLzNQ4vuI<tRl&L`1BJh=`R^L_|bH"
        "L_|bH1b^{QsI$pk@e6&Mmw7Yuna`UqyQfe6byjR-eme>tKeg_S_b)BCmi9C5B1aAgWud5=ZkU!VS8O;t_eYaYRMk|AWttULSIrhZ"
        "rdgXB{<p}zi&f1Hb#F~wl|sV0sy0<!7K|-9<5inY$1yAQ^<8x;IOx#OO`%I^9u%e^g1T^oP)&XAwSDMdRdQ<uYq)@Qba7E~d4Tph"
        "pe&0DHVlr~lpFw5<qh>6?LG04{;}jJNS~;mXcKWu|5WmppiO}-4@Bd$=I6^hxQs1ak$lCHd{w0gI^%8H_lWDB<f20IzT`@o<QI~w"
        "h5n`FnoaU6$@N12T5_WzxoH7h*uhmwtPHAm+u!MY6Ws3Y-~l{{hj0y#NbVA5a0`!0zE}n`{XYNU%8%QVYd>B8`N_#slcy(m43Fap"
        "Jc*}q9natfo|C*mxiu-bsx5hq_JRrc@^7#Fj_2`$<Q1~mCUA{Ay206O*%zHf4&u$5H#K<cZTph#)tm)1*n`~#;{C$)!H2eQckICK"
        ")oOM~@pHTJbYy!+MVSgv3UbE+bjo6%0H>neUAyss-EizGV>i~wd3P3Z_%PtN-$|fufxTr9kZbVEulCTstk6XH+?>m+E+|5Axo}a@"
        "ia$lTfac=6_%KCH*e+<)G0+xh*D1m^gbId0&?*KZ(9c4kKyJERmhJ#@!?r}}MF6fSM%59eKj)yfD%4dtU>sxsYllDqIC_L;2FH&9"
        "&En(<pvkVE2Abo>8L+kabD#p(C7vgKQ;1Rngo+A1Ow1!F#dlMpyN$;#78xj(Qux6@la<A*FF^xq1b7|lpy)HRn12ocYl@hEo&pvu"
        "EWLnr*A(F;(2#RW47ZA6${@uvmqCLHmYx;1tSZJrO_Z7iJ=Vcxs%S0JH_NfKLil+)aCS#c5mhvF6{{6nTdX+EYOCtjoU*>UTw7h1"
        "hHdMvW7(Fep>zz#v>emWt+K8f?L3UKFlOU^G-QKeH;)3=8OCYm$C)=?W=W9cNnD)#ZnqGddE6;v8ik#pI0RQm!#Ieu(2r&T-F)V_"
        "(hsBQp*zgHUJwV#4AJqUnatB{IPe~-!@<Z;rU4B$_M<#t>Gr^j{XxL|r04lrmZa0`vv3%D+4d-)%hFwY0Ud{F*bbvG+hzkQXDQAH"
        "9#Ljt5kL@sFrw<Ba1dr*7<VauGG+w$hn9q0lHG6+#OX9D>Ze}Y&pQ1u?s@;QQ=_uPr+ohH8YMv|ERF?WGwiYC5gf^*If||XRQM?L"
        "#z9ipSljPx1#x$eblNw{z87S(CQU;M_h6J~{;cM{pL!{k<OQ3XK_{E_Wiz2W3#OuVVLQ*L;^BzKL#D{z9_AV8c}6VWp4pE=KP4D7"
        "Jdd)6sJ)p@hcQ#al<Mw=)Pf=dHq81#GP^eI`$?C|WY>~lL~oCu1>NiH3IFQSE^8QX4jF-cdLKu5n;_K6a7;LMm8{7Y^I4ny4F&F<"
        "2>"
    ),
    "portable 0.14.0": (
        "c-nPS|BD+%6rZ`5chhB9mSu@U2+I<}5kknNM?8*F%C(eIOIwciD5aFLY?8gpdYetUU(z0>SP>Bs6%mzCj#5NKM8t}Sh*&8iA|fIp"
        "A|fIp_=|r+eVg1BztGuC-n{od?=$bq?&(v1oz>P;uM_%@omz9p`xloUUEI%j138vCAe4kAb;GoZs#Lb&?A#wMK9SOr`Le9CG^Ew0"
        "$FizZ!~Yh!cd^o1mwRjKD(4c`q-;q;<&14L<CU$J<5=a|+O9ek91Lh0mN1mE4hl;UK}|S9NXwXebssudQM|Z}Rb0Rt*0G_uIzW33"
        "P?ba(n<htWDGmTqdtJV*zbig8K2jV7=@a>}J`uN!PZVzp+7#G!K{P*YeYUiNOW4L`#g~hUuSklZGv20skGSqBF3Kc7S6nNR{6cY="
        ">t8Ca+a$kI+{pE>6*tR@TSb5iJGerLl|Z_;y`Ani{_V{jJb(xB5U%18#p{F_+`^-ZH%ee7-)BEu`Eh%4?WgNMKQVc7^3(*6;c+~H"
        "C-F3{;Tc@VbBZ@9w-)7Au@$e<Ua$aP`t9Z4@jPBoyi69`0<Lq%Fgcqo`=Zm}Al|rnQ-?R-vM<?g)mcE3-QQgx-pgI@e_(rd*Y@qr"
        "YSj)Xer`9Oj%@F!X;T4OPVN)|os!rmz$xo@S8v>BHypdd*o{?k-kn7pJ`DKncM7OmU~kz2<U0KFt39+YYcx?lH&^GCI%q<xb5Tc4"
        "&;K-02ecaR;DZ!(Vb?*Yj)A^FyG9XpQ%Eocf?hTefqq2<3glLutHK>XZrVjrcmaTGnptr~;m<j!t_Zav4pa{^fYn2w0USL-GlS#D"
        "fM#*>1khyHP6N$x{S4Up{5g=o4Ta~4-x8wG1R>F)hlzOv4e7fn(B0-E7xN6XqL%xGDJ@nKue=CNtP<cgsDWn8%wqmo0IX_a{y7R*"
        "C}QDxtko?MTml_AFN)z-UQ7v;c=|HvP{zVD!d4Z{T&RjdE2oz=QD;)L8}!X`EG!d#o(`PdkqM$i(~wvx+j^tyv?}dNz3P;Vm8I&+"
        "k}_@Es5?cwXz8dN)3J(<Wg5kjA<a$}glQ15aX%cg!LXNwKI;ynB=w@y9WSxiPqR46PhPK=i;XPm<}wL`uAd+LtD|A$M`_@Nvw&VU"
        "b6n{M;q=fOrtYR6`SA?V^}?CVl5{w5AE?8@$cv`|O*Zzz%xB5=z>U0t&%Aik_0lv>rq`#zFmluFkx!Q;yY?J94w9e~gh9H^22{>s"
        "lnq>>OoKdtAl_g^)rG+zNZlanQT}913Gfds4tgYe!N8A_X;j!x+>V!a`$4qn{>M&@N@I`m`L}Bn``sWv=75c0lf@6=h#$_8cg3f|"
        "M}a%`<J`tNUU$ondV8ePzESp@emZN?G$eNqMp^33YVLc9n@~xvzp>$W(^+3OV!AVD%3Bw7vXm+wj%Yk&3cc-NmXe;O#NzImy)f_+"
        "f>Fb>Fnxg9o7r?2GbKo<?p{DG$TMKWwC~5WYm>eg_oz&EE%rzB_IRn^yUrf>t}gDf2GPcl5!j>mag=okLahwOgkx998gDU=b=cnv"
        "^PPP"
    ),
    "portable 1.17.0": (
        "c-m!C@oU>g6uy_|%T*jg2%#ND9Kr}=gmJvg1QS9@>#}siHE9;QF-B(;TS>Iqk}FGTMk&o0V~jDz7~2?QjQt~{us>ygz+gY@*Y3$q"
        "`^yf!``&%u`%do;X>{-J_sruWI+?}q+&dg!Y;SG%x87vX=D<BbiFM0So*%T@-ClnW|N3nkhSH%Strh%lykhZzl(H)=<q-B(b47H0"
        "-|<?9N)mC+NeO6S*K&lVl(Q!sLH3sLg^<FrHa_0uz5;hgf!d`wM3g3P*uZ(908s%K3VKzL+#4&{aTW9>@nqq@Q~aqwcnXZV0!e6U"
        "1s0)A;ZUt2J|t|{5%<2~O$8lVb!mqNRR$DIM}bGEouG|if^XTt)<d`a4xsq(@X*AM9_moH1HZ{__VRk5h%4zV(H-5@+qxG7dWZZQ"
        "*M3UbtJE-7fJU{s?;`i>;)X!qGhggqy<}IuZZLMWPvVQU<JPSZ0KRAe@~^&DbQLCk`<?FVU5R>6-{fG>9m2*&2#pX8VT2$;ZkW|%"
        "h!DBcj`-_NO`$_H=_=4{Qnbhs+Cri&IGUc#Inv{D6n8=dCj?dd134Vo28h~^h+r7^9Tc^HHZbT5<%>oTFdQ^F8aQYPL>z<$x;SXl"
        "H-&?ai5?ER7Hacg+otaftoPBOS2#k{Iw&M}XvxGTqQU8WHAHT|(W{y;T%*zjmx9#~?z-6J0TsN9Ei|k(EjDjcePD>qJ7j3Oy!JM4"
        "h0ei_LX!iy2mN|=o;s?#H+MaxUU+R^Xw@+8yIRz`)&5e6I+F*Uj~s#5G#NH20rqcgUvkcEOY(-N&7Ku<<=ejF`i^b6bxYbOWil(0"
        "lwF+9GB(eq<t%2CEL|2+TF@`X^0+ATw92CCw1U$zom9A-C6l;H;>$&r#%Ym6v+>1SWSEv~;mLV2TP4%17@x&yoUbb;(QH=HlX6*P"
        "^YQCtHeW>f%FtnRYG*4g=VPLZq)4bEwv6Tr>TV^S=2=?A>2w?wMV_3LMZ9ELaUSPud3he?(<D7(PxE*|jYdU0ea1eCF1PY{S<Z@a"
        "lAdOaiX%GuqCBAzw#btUs$&s5VV9)jkJydp4eo>dU_5y=$0ztHKE-GF96!U)@reKOYkfF;FgzL#zpQ3Fw!i=3r_s-&(MXQ6(eY!k"
        "ERX&Jv<%sn"
    ),
}


def artifact(name: str) -> bytes:
    """The file of this name."""
    return zlib.decompress(base64.b85decode(ARTIFACTS[name]))
