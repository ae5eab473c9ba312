#include "textflag.h"

// Instructions that the assembler does not know, on vectors of four numbers of 32
// bits. SDOT adds the dot products of four bytes of n each and those at an index of
// m; high and low are the bits of the index, and m is 20 to 23.
#define SDOT(high, low, m, n, d) WORD $(0x4F80E000 | (high)<<11 | (low)<<21 | (m)<<16 | (n)<<5 | (d))
#define SCVTF(n, d) WORD $(0x4E21D800 | (n)<<5 | (d))
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))

// GROUP adds the products of 4 inner indexes: V16-V19 are the weights of 16
// columns, V20-V23 the numbers of 4 rows, V0-V15 the sums, four for each row.
#define GROUP(high, low) \
	VLD1.P 64(R4), [V16.B16, V17.B16, V18.B16, V19.B16] \
	SDOT(high, low, 20, 16, 0) \
	SDOT(high, low, 20, 17, 1) \
	SDOT(high, low, 20, 18, 2) \
	SDOT(high, low, 20, 19, 3) \
	SDOT(high, low, 21, 16, 4) \
	SDOT(high, low, 21, 17, 5) \
	SDOT(high, low, 21, 18, 6) \
	SDOT(high, low, 21, 19, 7) \
	SDOT(high, low, 22, 16, 8) \
	SDOT(high, low, 22, 17, 9) \
	SDOT(high, low, 22, 18, 10) \
	SDOT(high, low, 22, 19, 11) \
	SDOT(high, low, 23, 16, 12) \
	SDOT(high, low, 23, 17, 13) \
	SDOT(high, low, 23, 18, 14) \
	SDOT(high, low, 23, 19, 15)

// FINISH computes float32(sum) * xScale * wScale + bias for four columns: V24 is
// xScale, w and b are the registers of wScale and bias.
#define FINISH(w, b, sum) \
	SCVTF(sum, sum) \
	FMUL(24, sum, sum) \
	FMUL(w, sum, sum) \
	FADD(b, sum, sum)

// func int8SDOT(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)
TEXT ·int8SDOT(SB), NOSPLIT, $0-64
	MOVD dst+0(FP), R0
	MOVD dstStride+8(FP), R1
	MOVD x+16(FP), R2
	MOVD inner+24(FP), R3
	MOVD w+32(FP), R4
	MOVD xScale+40(FP), R5
	MOVD wScale+48(FP), R6
	MOVD bias+56(FP), R7
	LSL  $2, R1, R1
	ADD  R3, R2, R8
	ADD  R3, R8, R9
	ADD  R3, R9, R10
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V10.B16, V10.B16, V10.B16
	VEOR V11.B16, V11.B16, V11.B16
	VEOR V12.B16, V12.B16, V12.B16
	VEOR V13.B16, V13.B16, V13.B16
	VEOR V14.B16, V14.B16, V14.B16
	VEOR V15.B16, V15.B16, V15.B16

loop:
	VLD1.P 16(R2), [V20.B16]
	VLD1.P 16(R8), [V21.B16]
	VLD1.P 16(R9), [V22.B16]
	VLD1.P 16(R10), [V23.B16]
	GROUP(0, 0)
	GROUP(0, 1)
	GROUP(1, 0)
	GROUP(1, 1)
	SUBS $16, R3, R3
	BNE  loop

	VLD1 (R6), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1 (R7), [V20.S4, V21.S4, V22.S4, V23.S4]

	VLD1R.P 4(R5), [V24.S4]
	FINISH(16, 20, 0)
	FINISH(17, 21, 1)
	FINISH(18, 22, 2)
	FINISH(19, 23, 3)
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R0)
	ADD  R1, R0, R0

	VLD1R.P 4(R5), [V24.S4]
	FINISH(16, 20, 4)
	FINISH(17, 21, 5)
	FINISH(18, 22, 6)
	FINISH(19, 23, 7)
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R0)
	ADD  R1, R0, R0

	VLD1R.P 4(R5), [V24.S4]
	FINISH(16, 20, 8)
	FINISH(17, 21, 9)
	FINISH(18, 22, 10)
	FINISH(19, 23, 11)
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R0)
	ADD  R1, R0, R0

	VLD1R.P 4(R5), [V24.S4]
	FINISH(16, 20, 12)
	FINISH(17, 21, 13)
	FINISH(18, 22, 14)
	FINISH(19, 23, 15)
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R0)
	RET

// FMAROW adds the products of one inner index for a row: V16-V19 are the numbers
// of b.
#define FMAROW(pointer, s0, s1, s2, s3) \
	VLD1R.P 4(pointer), [V20.S4] \
	VFMLA V16.S4, V20.S4, s0 \
	VFMLA V17.S4, V20.S4, s1 \
	VFMLA V18.S4, V20.S4, s2 \
	VFMLA V19.S4, V20.S4, s3

// func float32NEON(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int, bias *float32)
TEXT ·float32NEON(SB), NOSPLIT, $0-64
	MOVD dst+0(FP), R0
	MOVD dstStride+8(FP), R1
	MOVD a+16(FP), R2
	MOVD aStride+24(FP), R3
	MOVD b+32(FP), R4
	MOVD bStride+40(FP), R5
	MOVD inner+48(FP), R6
	MOVD bias+56(FP), R7
	LSL  $2, R1, R1
	LSL  $2, R3, R3
	LSL  $2, R5, R5
	ADD  R3, R2, R8
	ADD  R3, R8, R9
	ADD  R3, R9, R10
	VLD1 (R7), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R7), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1 (R7), [V8.S4, V9.S4, V10.S4, V11.S4]
	VLD1 (R7), [V12.S4, V13.S4, V14.S4, V15.S4]

loop:
	VLD1 (R4), [V16.S4, V17.S4, V18.S4, V19.S4]
	ADD  R5, R4, R4
	FMAROW(R2, V0.S4, V1.S4, V2.S4, V3.S4)
	FMAROW(R8, V4.S4, V5.S4, V6.S4, V7.S4)
	FMAROW(R9, V8.S4, V9.S4, V10.S4, V11.S4)
	FMAROW(R10, V12.S4, V13.S4, V14.S4, V15.S4)
	SUBS $1, R6, R6
	BNE  loop

	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R0)
	ADD  R1, R0, R0
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R0)
	ADD  R1, R0, R0
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R0)
	ADD  R1, R0, R0
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R0)
	RET
