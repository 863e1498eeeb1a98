// Operators over whole rows, a work-group of GROUP items a row.

#ifndef GROUP
#define GROUP 256
#endif

// out = x / sqrt(mean(x^2) + epsilon) * weight: RMS_NORM with its MUL.
kernel void rms_norm(global const float *x, global const float *weight, global float *out, const int columns,
                     const float epsilon) {
    local float scratch[GROUP];
    const size_t first = (size_t)get_group_id(0) * columns;
    float squares = 0.0f;
    for (int i = get_local_id(0); i < columns; i += GROUP) squares += x[first + i] * x[first + i];
    const float inverse = 1.0f / sqrt(group_sum(scratch, squares) / columns + epsilon);
    for (int i = get_local_id(0); i < columns; i += GROUP) out[first + i] = x[first + i] * inverse * weight[i];
}

// out = exp(scale * x - largest) / sum: SOFT_MAX, stable however large x is.
kernel void softmax(global const float *x, global float *out, const int columns, const float scale) {
    local float scratch[GROUP];
    const size_t first = (size_t)get_group_id(0) * columns;
    float largest = -INFINITY;
    for (int i = get_local_id(0); i < columns; i += GROUP) largest = fmax(largest, scale * x[first + i]);
    largest = group_max(scratch, largest);
    float sum = 0.0f;
    for (int i = get_local_id(0); i < columns; i += GROUP) {
        const float power = exp(scale * x[first + i] - largest);
        out[first + i] = power;
        sum += power;
    }
    const float inverse = 1.0f / group_sum(scratch, sum);
    for (int i = get_local_id(0); i < columns; i += GROUP) out[first + i] *= inverse;
}

// out[row] = table[ids[row]] of an F16 table: GET_ROWS on the token embedding.
kernel void get_rows(global const half *table, global const int *ids, global float *out, const int columns) {
    const size_t from = (size_t)ids[get_group_id(0)] * columns, to = (size_t)get_group_id(0) * columns;
    for (int i = get_local_id(0); i < columns / 8; i += GROUP) vstore8(vload_half8(i, table + from), i, out + to);
    for (int i = columns / 8 * 8 + get_local_id(0); i < columns; i += GROUP) out[to + i] = vload_half(from + i, table);
}
