// Rotary position embedding of x [token][head index][head]: pair i of a head is turned by position * base^(-2 i / head).
// NORMAL pairs neighbours (2 i, 2 i + 1); NEOX pairs i with i + head / 2. Global size: (head / 2, heads, tokens).

// Turn the pair (first, second) by the angle of pair i.
void rotate(global const float *x, global float *out, int first, int second, int i, int position, int head,
            float log2_base) {
    const float angle = position * exp2(-2.0f * i / head * log2_base);
    const float cosine = cos(angle), sine = sin(angle);
    out[first] = x[first] * cosine - x[second] * sine;
    out[second] = x[first] * sine + x[second] * cosine;
}

kernel void rope_normal(global const float *x, global const int *positions, global float *out, const int head,
                        const float log2_base) {
    const int i = get_global_id(0), token = get_global_id(2);
    const size_t start = ((size_t)token * get_global_size(1) + get_global_id(1)) * head;
    rotate(x + start, out + start, 2 * i, 2 * i + 1, i, positions[token], head, log2_base);
}

kernel void rope_neox(global const float *x, global const int *positions, global float *out, const int head,
                      const float log2_base) {
    const int i = get_global_id(0), token = get_global_id(2);
    const size_t start = ((size_t)token * get_global_size(1) + get_global_id(1)) * head;
    rotate(x + start, out + start, i, i + head / 2, i, positions[token], head, log2_base);
}
