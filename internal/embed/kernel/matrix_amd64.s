#include "textflag.h"

// The int8 kernels for AVX2 and AVX-VNNI multiply 4 rows of x by 16 columns of w. For
// each 4 inner indexes, Y8 and Y9 are loaded with 4 weights of each of 16 columns, and the 4
// numbers of a row are broadcast to all lanes.
//
// VPMADDUBSW and VPDPBUSD multiply unsigned by signed bytes. So the sign of x
// moves to w: |x| * sign(w, x) = x * w. The sums of two products that VPMADDUBSW
// saturates are at most 2 * 128 * 127 < 1<<15.
//
// Registers: Y0-Y7 sums (two for each row), Y8 Y9 weights, Y10 numbers of x,
// Y11 their absolute values, Y12 Y13 products, Y15 sixteen ones.
//
// DI dst, R8 its stride in bytes, SI x, R9 inner, DX w, R10 R11 second and fourth
// row of x (inner*1, inner*3).

#define LOAD \
	MOVQ dst+0(FP), DI \
	MOVQ dstStride+8(FP), R8 \
	SHLQ $2, R8 \
	MOVQ x+16(FP), SI \
	MOVQ inner+24(FP), R9 \
	MOVQ w+32(FP), DX \
	LEAQ (R9)(R9*2), R10 \
	MOVQ R9, CX \
	SHRQ $2, CX \
	VPXOR Y0, Y0, Y0 \
	VPXOR Y1, Y1, Y1 \
	VPXOR Y2, Y2, Y2 \
	VPXOR Y3, Y3, Y3 \
	VPXOR Y4, Y4, Y4 \
	VPXOR Y5, Y5, Y5 \
	VPXOR Y6, Y6, Y6 \
	VPXOR Y7, Y7, Y7

// SIGNS prepares the products of the numbers at a place by 16 columns.
#define SIGNS(place) \
	VPBROADCASTD place, Y10 \
	VPABSB Y10, Y11 \
	VPSIGNB Y10, Y8, Y12 \
	VPSIGNB Y10, Y9, Y13

// ROW adds the products by multiplying and adding in two steps.
#define ROW(place, sum0, sum1) \
	SIGNS(place) \
	VPMADDUBSW Y12, Y11, Y12 \
	VPMADDUBSW Y13, Y11, Y13 \
	VPMADDWD Y15, Y12, Y12 \
	VPMADDWD Y15, Y13, Y13 \
	VPADDD Y12, sum0, sum0 \
	VPADDD Y13, sum1, sum1

// FINISH writes a row: float32(sum) * xScale * wScale + bias.
#define FINISH(number, sum0, sum1) \
	VBROADCASTSS number(AX), Y14 \
	VCVTDQ2PS sum0, sum0 \
	VCVTDQ2PS sum1, sum1 \
	VMULPS Y14, sum0, sum0 \
	VMULPS Y14, sum1, sum1 \
	VMULPS Y8, sum0, sum0 \
	VMULPS Y9, sum1, sum1 \
	VADDPS Y10, sum0, sum0 \
	VADDPS Y11, sum1, sum1 \
	VMOVUPS sum0, (DI) \
	VMOVUPS sum1, 32(DI) \
	ADDQ R8, DI

#define WRITE \
	MOVQ xScale+40(FP), AX \
	MOVQ wScale+48(FP), BX \
	MOVQ bias+56(FP), CX \
	VMOVUPS (BX), Y8 \
	VMOVUPS 32(BX), Y9 \
	VMOVUPS (CX), Y10 \
	VMOVUPS 32(CX), Y11 \
	FINISH(0, Y0, Y1) \
	FINISH(4, Y2, Y3) \
	FINISH(8, Y4, Y5) \
	FINISH(12, Y6, Y7) \
	VZEROUPPER

// func int8AVX2(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)
TEXT ·int8AVX2(SB), NOSPLIT, $0-64
	LOAD
	VPCMPEQW Y15, Y15, Y15
	VPABSW Y15, Y15

loop:
	VMOVDQU (DX), Y8
	VMOVDQU 32(DX), Y9
	ROW((SI), Y0, Y1)
	ROW((SI)(R9*1), Y2, Y3)
	ROW((SI)(R9*2), Y4, Y5)
	ROW((SI)(R10*1), Y6, Y7)
	ADDQ $64, DX
	ADDQ $4, SI
	DECQ CX
	JNZ  loop
	WRITE
	RET

// VPDPBUSD Y12, Y11, sum0 and VPDPBUSD Y13, Y11, sum1 in the VEX encoding of
// AVX-VNNI, which the assembler does not know: VEX.256.66.0F38.W0 50 /r. The last
// byte is 0xC0 | sum<<3 | multiplier&7.
#define ROWVEX(place, byte0, byte1) \
	SIGNS(place) \
	BYTE $0xC4; BYTE $0xC2; BYTE $0x25; BYTE $0x50; BYTE $byte0 \
	BYTE $0xC4; BYTE $0xC2; BYTE $0x25; BYTE $0x50; BYTE $byte1

// func int8AVXVNNI(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)
TEXT ·int8AVXVNNI(SB), NOSPLIT, $0-64
	LOAD

loop:
	VMOVDQU (DX), Y8
	VMOVDQU 32(DX), Y9
	ROWVEX((SI), 0xC4, 0xCD)
	ROWVEX((SI)(R9*1), 0xD4, 0xDD)
	ROWVEX((SI)(R9*2), 0xE4, 0xED)
	ROWVEX((SI)(R10*1), 0xF4, 0xFD)
	ADDQ $64, DX
	ADDQ $4, SI
	DECQ CX
	JNZ  loop
	WRITE
	RET

// The kernel for AVX-512 adds 128 to the numbers of x, which makes them unsigned, and
// subtracts 128 times the sum of the weights of a column. Two sets of sums hide the
// latency of the instruction.
//
// Registers: Z0-Z3 and Z4-Z7 sums by row, Z8 Z9 weights, Z10 128 in each byte, Z11 what
// the sums begin with, Z12-Z15 numbers of x, Z16 scales of columns, Z17 bias.
//
// R12 rows, R13 place in w, DX w.

#define ROW512(place, weights, unsigned, sum) \
	VPXORD.BCST place, Z10, unsigned \
	VPDPBUSD weights, unsigned, sum

#define FINISH512(number, sum0, sum1) \
	VPADDD sum1, sum0, sum0 \
	VCVTDQ2PS sum0, sum0 \
	VMULPS.BCST number(AX), sum0, sum0 \
	VMULPS Z16, sum0, sum0 \
	VADDPS Z17, sum0, sum0 \
	VMOVUPS sum0, (DI) \
	ADDQ R8, DI

// func int8AVX512VNNI(dst *float32, dstStride int, x *int8, inner, rows int, w *int8, xScale, wScale, bias *float32)
TEXT ·int8AVX512VNNI(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ dstStride+8(FP), R8
	SHLQ $2, R8
	MOVQ x+16(FP), SI
	MOVQ inner+24(FP), R9
	MOVQ rows+32(FP), R12
	MOVQ w+40(FP), DX
	MOVQ xScale+48(FP), AX
	MOVQ wScale+56(FP), BX
	MOVQ bias+64(FP), CX
	VMOVUPS (BX), Z16
	VMOVUPS (CX), Z17
	LEAQ (R9)(R9*2), R10
	MOVL $0x80808080, BX
	VPBROADCASTD BX, Z10

	MOVQ R9, CX
	SHRQ $2, CX
	MOVQ DX, R13
	VPXORD Z0, Z0, Z0
	VPXORD Z11, Z11, Z11

columns:
	VPDPBUSD (R13), Z10, Z0
	ADDQ $64, R13
	DECQ CX
	JNZ  columns
	VPSUBD Z0, Z11, Z11

tile:
	MOVQ R9, CX
	SHRQ $3, CX
	MOVQ DX, R13
	VMOVDQA64 Z11, Z0
	VMOVDQA64 Z11, Z1
	VMOVDQA64 Z11, Z2
	VMOVDQA64 Z11, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7

loop:
	VMOVDQU32 (R13), Z8
	VMOVDQU32 64(R13), Z9
	ROW512((SI), Z8, Z12, Z0)
	ROW512((SI)(R9*1), Z8, Z13, Z1)
	ROW512((SI)(R9*2), Z8, Z14, Z2)
	ROW512((SI)(R10*1), Z8, Z15, Z3)
	ROW512(4(SI), Z9, Z12, Z4)
	ROW512(4(SI)(R9*1), Z9, Z13, Z5)
	ROW512(4(SI)(R9*2), Z9, Z14, Z6)
	ROW512(4(SI)(R10*1), Z9, Z15, Z7)
	ADDQ $128, R13
	ADDQ $8, SI
	DECQ CX
	JNZ  loop

	FINISH512(0, Z0, Z4)
	FINISH512(4, Z1, Z5)
	FINISH512(8, Z2, Z6)
	FINISH512(12, Z3, Z7)
	ADDQ $16, AX
	ADDQ R10, SI
	SUBQ $4, R12
	JNZ  tile
	VZEROUPPER
	RET

#define FMAROW(place, sum0, sum1) \
	VBROADCASTSS place, Y10 \
	VFMADD231PS Y8, Y10, sum0 \
	VFMADD231PS Y9, Y10, sum1

// func float32AVX2(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int, bias *float32)
TEXT ·float32AVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ dstStride+8(FP), R8
	SHLQ $2, R8
	MOVQ a+16(FP), SI
	MOVQ aStride+24(FP), R9
	SHLQ $2, R9
	MOVQ b+32(FP), DX
	MOVQ bStride+40(FP), R11
	SHLQ $2, R11
	MOVQ inner+48(FP), CX
	MOVQ bias+56(FP), AX
	LEAQ (R9)(R9*2), R10
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y1, Y3
	VMOVAPS Y0, Y4
	VMOVAPS Y1, Y5
	VMOVAPS Y0, Y6
	VMOVAPS Y1, Y7

loop:
	VMOVUPS (DX), Y8
	VMOVUPS 32(DX), Y9
	FMAROW((SI), Y0, Y1)
	FMAROW((SI)(R9*1), Y2, Y3)
	FMAROW((SI)(R9*2), Y4, Y5)
	FMAROW((SI)(R10*1), Y6, Y7)
	ADDQ R11, DX
	ADDQ $4, SI
	DECQ CX
	JNZ  loop

	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ R8, DI
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	ADDQ R8, DI
	VMOVUPS Y4, (DI)
	VMOVUPS Y5, 32(DI)
	ADDQ R8, DI
	VMOVUPS Y6, (DI)
	VMOVUPS Y7, 32(DI)
	VZEROUPPER
	RET
