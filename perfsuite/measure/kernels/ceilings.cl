// What a device does at most: streams over memory, and arithmetic without memory. OpenCL C 1.2, but for PART_DOT.
//
// Defined by who builds it: one of PART_STREAM, PART_FP32, PART_F16, PART_INT8, PART_DOT; WIDTH, values of a vector (4, 8
// or 16); ACCUMULATORS, independent chains of an item; IN_CHUNKS, 1 where an item works on neighbouring vectors, as a
// processor with caches and prefetchers likes it, 0 where neighbouring items do, as a GPU does.

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FLOATS JOIN(float, WIDTH)
#define HALVES JOIN(half, WIDTH)
#define INTS JOIN(int, WIDTH)
#define UINTS JOIN(uint, WIDTH)

#define SUM4(v) ((v).s0 + (v).s1 + (v).s2 + (v).s3)
#define SUM8(v) (SUM4((v).lo) + SUM4((v).hi))
#define SUM16(v) (SUM8((v).lo) + SUM8((v).hi))
#define SUM(v) JOIN(SUM, WIDTH)(v)

#define LANES4 0, 1, 2, 3
#define LANES8 LANES4, 4, 5, 6, 7
#define LANES16 LANES8, 8, 9, 10, 11, 12, 13, 14, 15
#define LANES JOIN(LANES, WIDTH)

#if IN_CHUNKS
// A group of one item: the compiler must not weave items together whose vectors are as wide as the registers already.
#define ENTRY __attribute__((reqd_work_group_size(1, 1, 1))) kernel void
#define FIRST(count) (uint)((ulong)(count) * get_global_id(0) / get_global_size(0))
#define LAST(count) (uint)((ulong)(count) * (get_global_id(0) + 1) / get_global_size(0))
#define STEP 1u
#else
#define ENTRY kernel void
#define FIRST(count) (uint)get_global_id(0)
#define LAST(count) (count)
#define STEP (uint)get_global_size(0)
#endif

// Arrays of `count` vectors lie behind each other in `memory`, the one that is written last.
#ifdef PART_STREAM

// Each item's sum goes to `sums`, so that no read can be left out; four sums, so that none waits for another.
ENTRY stream_read(global FLOATS *memory, global float *sums, const uint count, const uint passes) {
    FLOATS a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    const uint last = LAST(count), step = STEP;
    for (uint pass = 0; pass < passes; pass++) {
        uint i = FIRST(count);
        for (; i + 3 * step < last; i += 4 * step) {
            a += memory[i];
            b += memory[i + step];
            c += memory[i + 2 * step];
            d += memory[i + 3 * step];
        }
        for (; i < last; i += step) a += memory[i];
    }
    sums[get_global_id(0)] = SUM(a + b + c + d);
}

ENTRY stream_copy(global FLOATS *memory, global float *sums, const uint count, const uint passes) {
    global FLOATS *to = memory + count;
    const uint last = LAST(count), step = STEP;
    for (uint pass = 0; pass < passes; pass++) {
        uint i = FIRST(count);
        for (; i + 3 * step < last; i += 4 * step) {
            const FLOATS a = memory[i], b = memory[i + step], c = memory[i + 2 * step], d = memory[i + 3 * step];
            to[i] = a;
            to[i + step] = b;
            to[i + 2 * step] = c;
            to[i + 3 * step] = d;
        }
        for (; i < last; i += step) to[i] = memory[i];
    }
}

// to = memory + more / 1024: a factor so small that the values stay what they are over any number of launches.
#define TRIAD(i) (memory[i] + more[i] * (1.0f / 1024))
ENTRY stream_triad(global FLOATS *memory, global float *sums, const uint count, const uint passes) {
    global FLOATS *more = memory + count, *to = more + count;
    const uint last = LAST(count), step = STEP;
    for (uint pass = 0; pass < passes; pass++) {
        uint i = FIRST(count);
        for (; i + 3 * step < last; i += 4 * step) {
            const FLOATS a = TRIAD(i), b = TRIAD(i + step), c = TRIAD(i + 2 * step), d = TRIAD(i + 3 * step);
            to[i] = a;
            to[i + step] = b;
            to[i + 2 * step] = c;
            to[i + 3 * step] = d;
        }
        for (; i < last; i += step) to[i] = TRIAD(i);
    }
}
#endif

// Chain k of item g begins with g % 8 + k, and each of its lanes with one more than the one before, so that no two chains
// are the same work; times SPREAD where all four bytes count. Every item's sum of all goes to `sums`.
#define SPREAD 0x9E3779B1u
#define START (int)(get_global_id(0) % 8)

// acc = acc * x + y. `mad` is what a device does fastest: fused where it can.
#ifdef PART_FP32
ENTRY chains_fp32(global float *sums, const float x, const float y, const uint passes) {
    FLOATS acc[ACCUMULATORS], total = 0.0f;
    for (int k = 0; k < ACCUMULATORS; k++) acc[k] = (FLOATS)(LANES) + (float)(START + k);
    for (uint pass = 0; pass < passes; pass++)
        for (int k = 0; k < ACCUMULATORS; k++) acc[k] = mad(acc[k], (FLOATS)(x), (FLOATS)(y));
    for (int k = 0; k < ACCUMULATORS; k++) total += acc[k];
    sums[get_global_id(0)] = SUM(total);
}
#endif

#ifdef PART_F16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
ENTRY chains_f16(global float *sums, const float x, const float y, const uint passes) {
    HALVES acc[ACCUMULATORS];
    FLOATS total = 0.0f;
    for (int k = 0; k < ACCUMULATORS; k++) acc[k] = (HALVES)(LANES) + (half)(START + k);
    for (uint pass = 0; pass < passes; pass++)
        for (int k = 0; k < ACCUMULATORS; k++) acc[k] = mad(acc[k], (HALVES)((half)x), (HALVES)((half)y));
    for (int k = 0; k < ACCUMULATORS; k++) total += JOIN(convert_float, WIDTH)(acc[k]);
    sums[get_global_id(0)] = SUM(total);
}
#endif

// acc += the dot product of the four signed bytes of acc and of `bytes`. One operand changes with every step, or the
// compiler could compute the product once.
#ifdef PART_INT8
#define BYTE(v, n) ((v) << (24 - 8 * (n)) >> 24)
ENTRY chains_int8(global uint *sums, const uint bytes, const uint passes) {
    const char4 b = as_char4(bytes);
    const int b0 = b.s0, b1 = b.s1, b2 = b.s2, b3 = b.s3;
    UINTS acc[ACCUMULATORS], total = 0u;
    for (int k = 0; k < ACCUMULATORS; k++) acc[k] = ((UINTS)(LANES) + (uint)(START + k)) * SPREAD;
    for (uint pass = 0; pass < passes; pass++)
        for (int k = 0; k < ACCUMULATORS; k++) {
            const INTS a = JOIN(as_int, WIDTH)(acc[k]);
            const INTS product = BYTE(a, 0) * b0 + BYTE(a, 1) * b1 + BYTE(a, 2) * b2 + BYTE(a, 3) * b3;
            acc[k] += JOIN(as_uint, WIDTH)(product);
        }
    for (int k = 0; k < ACCUMULATORS; k++) total += acc[k];
    sums[get_global_id(0)] = SUM(total);
}
#endif

// The same by the device's own dot product, which takes four bytes at a time: WIDTH chains side by side.
#ifdef PART_DOT
ENTRY chains_int8(global uint *sums, const uint bytes, const uint passes) {
    const char4 b = as_char4(bytes);
    uint acc[ACCUMULATORS * WIDTH], total = 0;
    for (int k = 0; k < ACCUMULATORS * WIDTH; k++) acc[k] = (uint)(k / WIDTH + k % WIDTH + START) * SPREAD;
    for (uint pass = 0; pass < passes; pass++)
        for (int k = 0; k < ACCUMULATORS * WIDTH; k++) acc[k] += (uint)dot(as_char4(acc[k]), b);
    for (int k = 0; k < ACCUMULATORS * WIDTH; k++) total += acc[k];
    sums[get_global_id(0)] = total;
}
#endif
