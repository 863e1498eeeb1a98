// One item a value: activations, sums and dequantisation. The global size is rounded up, hence `count`.

// out = gate / (1 + exp(-gate)) * up: the gated feed-forward's SILU and MUL.
kernel void silu_mul(global const float *gate, global const float *up, global float *out, const int count) {
    const int i = get_global_id(0);
    if (i < count) out[i] = gate[i] / (1.0f + exp(-gate[i])) * up[i];
}

// out = a + b: the residual ADD.
kernel void add(global const float *a, global const float *b, global float *out, const int count) {
    const int i = get_global_id(0);
    if (i < count) out[i] = a[i] + b[i];
}

kernel void dequantize_q8_0(global const uchar *blocks, global float *out, const int count) {
    const int i = get_global_id(0);
    if (i >= count) return;
    global const uchar *block = blocks + (size_t)(i / BLOCK_VALUES) * Q8_0_BYTES;
    out[i] = block_scale(block) * q8_0_quant(block, i % BLOCK_VALUES);
}

kernel void dequantize_q4_0(global const uchar *blocks, global float *out, const int count) {
    const int i = get_global_id(0);
    if (i >= count) return;
    global const uchar *block = blocks + (size_t)(i / BLOCK_VALUES) * Q4_0_BYTES;
    const int lane = i % BLOCK_VALUES, byte = lane % 16;
    out[i] = block_scale(block) * (lane < 16 ? q4_0_low(block, byte) : q4_0_high(block, byte));
}
