// out[m] = sum over k of weights[m][k] * x[k]: decode's MUL_MAT, one activation row.
//
// LANES items share a row and take its pieces of 16 values (Q8_0, Q4_0: its blocks of 32, so there k is a multiple of
// 32) in turn; a work-group of LANES x ROWS items computes ROWS outputs. On a CPU one lane is best, on a GPU a lane for
// each item of a subgroup. Global size: (LANES, m rounded up to ROWS).

#ifndef LANES
#define LANES 16
#endif
#ifndef ROWS
#define ROWS 4
#endif

float sum16(float16 v) {
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    return b.x + b.y + b.z + b.w;
}

// Add up the lanes' sums of each row of the group and store them; every item must call.
void store_row(local float *scratch, float sum, global float *out, int m) {
    const int lane = get_local_id(0), row = get_global_id(1);
    local float *lanes = scratch + get_local_id(1) * LANES;
    lanes[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > 0 || row >= m) return;
    for (int i = 1; i < LANES; ++i) sum += lanes[i];
    out[row] = sum;
}

// The row that an item reads: the last one for those beyond it, whose sums are not stored.
int item_row(int m) {
    return min((int)get_global_id(1), m - 1);
}

kernel void gemv_f32(global const float *weights, global const float *x, global float *out, const int m, const int k) {
    local float scratch[LANES * ROWS];
    global const float *row = weights + (size_t)item_row(m) * k;
    float16 sums = 0.0f;
    for (int i = 16 * get_local_id(0); i + 16 <= k; i += 16 * LANES) sums += vload16(0, row + i) * vload16(0, x + i);
    float sum = sum16(sums);
    for (int i = k / 16 * 16 + get_local_id(0); i < k; i += LANES) sum += row[i] * x[i];
    store_row(scratch, sum, out, m);
}

kernel void gemv_f16(global const half *weights, global const float *x, global float *out, const int m, const int k) {
    local float scratch[LANES * ROWS];
    global const half *row = weights + (size_t)item_row(m) * k;
    float16 sums = 0.0f;
    for (int i = 16 * get_local_id(0); i + 16 <= k; i += 16 * LANES)
        sums += vload_half16(0, row + i) * vload16(0, x + i);
    float sum = sum16(sums);
    for (int i = k / 16 * 16 + get_local_id(0); i < k; i += LANES) sum += vload_half(i, row) * x[i];
    store_row(scratch, sum, out, m);
}

kernel void gemv_q8_0(global const uchar *weights, global const float *x, global float *out, const int m, const int k) {
    local float scratch[LANES * ROWS];
    const int blocks = k / BLOCK_VALUES;
    global const uchar *row = weights + (size_t)item_row(m) * blocks * Q8_0_BYTES;
    float16 sums = 0.0f;
    for (int b = get_local_id(0); b < blocks; b += LANES) {
        global const uchar *block = row + b * Q8_0_BYTES;
        global const char *quants = (global const char *)block + 2;
        global const float *part = x + b * BLOCK_VALUES;
        sums += block_scale(block) * (convert_float16(vload16(0, quants)) * vload16(0, part) +
                                      convert_float16(vload16(1, quants)) * vload16(1, part));
    }
    store_row(scratch, sum16(sums), out, m);
}

kernel void gemv_q4_0(global const uchar *weights, global const float *x, global float *out, const int m, const int k) {
    local float scratch[LANES * ROWS];
    const int blocks = k / BLOCK_VALUES;
    global const uchar *row = weights + (size_t)item_row(m) * blocks * Q4_0_BYTES;
    float16 sums = 0.0f;
    for (int b = get_local_id(0); b < blocks; b += LANES) {
        global const uchar *block = row + b * Q4_0_BYTES;
        global const float *part = x + b * BLOCK_VALUES;
        const uchar16 nibbles = vload16(0, block + 2);
        sums += block_scale(block) * ((convert_float16(nibbles & (uchar)15) - 8.0f) * vload16(0, part) +
                                      (convert_float16(nibbles >> (uchar)4) - 8.0f) * vload16(1, part));
    }
    store_row(scratch, sum16(sums), out, m);
}
