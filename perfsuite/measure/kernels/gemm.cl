// out[n][m] = sum over k of weights[m][k] * activations[n][k]: ggml's MUL_MAT, both operands row by row.
//
// A work-group computes a TILE x TILE piece of the output. Its TILE x (TILE / ROWS) items load a piece of both operands
// into local memory, then each adds up ROWS outputs, so that a weight is read from local memory once for ROWS
// multiplications. Pieces that hang over an edge are filled with zeros, so any m, n and k will do.

#ifndef TILE
#define TILE 32
#endif
#ifndef ROWS
#define ROWS 8
#endif
#define STRIDE (TILE / ROWS)

float load_f32(global const float *values, size_t i) { return values[i]; }
float load_f16(global const half *values, size_t i) { return vload_half(i, values); }

#define DEFINE_GEMM(NAME, WEIGHT, LOAD)                                                                               \
    kernel void NAME(global const WEIGHT *weights, global const float *activations, global float *out,                \
                     const int m, const int n, const int k) {                                                         \
        local float weight_tile[TILE][TILE + 1]; /* [k][m]; the spare column keeps banks apart */                     \
        local float activation_tile[TILE][TILE]; /* [n][k] */                                                         \
        const int column = get_local_id(0), row = get_local_id(1);                                                    \
        const int first_m = get_group_id(0) * TILE, first_n = get_group_id(1) * TILE;                                 \
        float sums[ROWS];                                                                                             \
        for (int r = 0; r < ROWS; ++r) sums[r] = 0.0f;                                                                \
        for (int first_k = 0; first_k < k; first_k += TILE) {                                                         \
            const int this_k = first_k + column;                                                                      \
            for (int r = 0; r < ROWS; ++r) {                                                                          \
                const int i = row + r * STRIDE, this_m = first_m + i, this_n = first_n + i;                           \
                weight_tile[column][i] =                                                                              \
                    this_m < m && this_k < k ? LOAD(weights, (size_t)this_m * k + this_k) : 0.0f;                     \
                activation_tile[i][column] =                                                                          \
                    this_n < n && this_k < k ? activations[(size_t)this_n * k + this_k] : 0.0f;                       \
            }                                                                                                         \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
            for (int i = 0; i < TILE; ++i) {                                                                          \
                const float weight = weight_tile[i][column];                                                          \
                for (int r = 0; r < ROWS; ++r) sums[r] += weight * activation_tile[row + r * STRIDE][i];              \
            }                                                                                                         \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
        }                                                                                                             \
        for (int r = 0; r < ROWS; ++r) {                                                                              \
            const int this_m = first_m + column, this_n = first_n + row + r * STRIDE;                                 \
            if (this_m < m && this_n < n) out[(size_t)this_n * m + this_m] = sums[r];                                 \
        }                                                                                                             \
    }

DEFINE_GEMM(gemm_f32, float, load_f32)
DEFINE_GEMM(gemm_f16, half, load_f16)
