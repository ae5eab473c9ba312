#include "textflag.h"

// Go's assembler lacks these instructions. Operands are numbers of vector
// registers, in the order of Arm: the destination is the first.
#define SDOT(d, n, m) WORD $(0x4e809400 | (m)<<16 | (n)<<5 | (d))  // d.4s += products of 4 bytes each of n and m
#define SMULL(d, n, m) WORD $(0x0e20c000 | (m)<<16 | (n)<<5 | (d)) // d.8h = low bytes of n times those of m
#define SMULL2(d, n, m) WORD $(0x4e20c000 | (m)<<16 | (n)<<5 | (d)) // d.8h = high bytes of n times those of m
#define SADALP(d, n) WORD $(0x4e606800 | (n)<<5 | (d))             // d.4s += sums of pairs of n.8h

// func dotSDOT(dst *int32, codes *int8, query *int8, rows, stride int)
TEXT ·dotSDOT(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD codes+8(FP), R1
	MOVD query+16(FP), R2
	MOVD rows+24(FP), R3
	MOVD stride+32(FP), R4

two:
	CMP  $2, R3
	BLT  one
	ADD  R4, R1, R5      // the second row
	MOVD R2, R6
	MOVD R4, R7
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

twoLoop:
	VLD1.P 64(R6), [V4.B16, V5.B16, V6.B16, V7.B16]
	VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R5), [V20.B16, V21.B16, V22.B16, V23.B16]
	SDOT(0, 16, 4)
	SDOT(1, 20, 4)
	SDOT(2, 17, 5)
	SDOT(3, 21, 5)
	SDOT(0, 18, 6)
	SDOT(1, 22, 6)
	SDOT(2, 19, 7)
	SDOT(3, 23, 7)
	SUBS $64, R7, R7
	BGT  twoLoop

	VADD  V2.S4, V0.S4, V0.S4
	VADD  V3.S4, V1.S4, V1.S4
	VADDV V0.S4, V0
	VADDV V1.S4, V1
	FMOVS F0, (R0)
	FMOVS F1, 4(R0)
	ADD   $8, R0
	MOVD  R5, R1
	SUB   $2, R3
	B     two

one:
	CBZ  R3, done
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V2.B16, V2.B16, V2.B16

oneLoop:
	VLD1.P 64(R2), [V4.B16, V5.B16, V6.B16, V7.B16]
	VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]
	SDOT(0, 16, 4)
	SDOT(2, 17, 5)
	SDOT(0, 18, 6)
	SDOT(2, 19, 7)
	SUBS $64, R4, R4
	BGT  oneLoop

	VADD  V2.S4, V0.S4, V0.S4
	VADDV V0.S4, V0
	FMOVS F0, (R0)

done:
	RET

// func dotNEON(dst *int32, codes *int8, query *int8, rows, stride int)
TEXT ·dotNEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD codes+8(FP), R1
	MOVD query+16(FP), R2
	MOVD rows+24(FP), R3
	MOVD stride+32(FP), R4

row:
	CBZ  R3, end
	MOVD R2, R6
	MOVD R4, R7
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16

rowLoop:
	VLD1.P 32(R6), [V4.B16, V5.B16]
	VLD1.P 32(R1), [V16.B16, V17.B16]
	SMULL(20, 16, 4)
	SMULL2(21, 16, 4)
	SMULL(22, 17, 5)
	SMULL2(23, 17, 5)
	SADALP(0, 20)
	SADALP(1, 21)
	SADALP(0, 22)
	SADALP(1, 23)
	SUBS $32, R7, R7
	BGT  rowLoop

	VADD  V1.S4, V0.S4, V0.S4
	VADDV V0.S4, V0
	FMOVS F0, (R0)
	ADD   $4, R0
	SUB   $1, R3
	B     row

end:
	RET
