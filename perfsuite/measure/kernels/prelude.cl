// What every program begins with: reductions over a work-group, and ggml's blocks of quantised weights.
// OpenCL C 1.2; F16 is storage only (vload_half), so that cl_khr_fp16 is not needed. Sums are F32.

// The sum of `value` over the work-group, for each of its items. The group's size is a power of two and `scratch` holds
// one float an item; every item must call.
float group_sum(local float *scratch, float value) {
    const int item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = (int)get_local_size(0) / 2; width > 0; width /= 2) {
        if (item < width) scratch[item] += scratch[item + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float total = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);  // the next reduction may write scratch
    return total;
}

// The largest `value` of the work-group, for each of its items; as group_sum.
float group_max(local float *scratch, float value) {
    const int item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = (int)get_local_size(0) / 2; width > 0; width /= 2) {
        if (item < width) scratch[item] = fmax(scratch[item], scratch[item + width]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float largest = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return largest;
}

// A block is 32 weights behind one F16 scale, without padding: 34 bytes for Q8_0 and 18 for Q4_0.
#define BLOCK_VALUES 32
#define Q8_0_BYTES 34
#define Q4_0_BYTES 18

float block_scale(global const uchar *block) {
    return vload_half(0, (global const half *)block);
}

// Q8_0: value i is scale * q[i], q[i] a signed byte.
float q8_0_quant(global const uchar *block, int i) {
    return (float)((global const char *)block)[2 + i];
}

// Q4_0: byte i holds value i in its low nibble and value i + 16 in its high one; a value is scale * (nibble - 8).
float q4_0_low(global const uchar *block, int i) {
    return (float)((int)(block[2 + i] & 15) - 8);
}

float q4_0_high(global const uchar *block, int i) {
    return (float)((int)(block[2 + i] >> 4) - 8);
}
