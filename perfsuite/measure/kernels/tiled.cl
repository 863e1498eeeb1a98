// out[b][m][n] = sum over k of activations[b][m][k] * weights[b][n][k], in whole tiles: GEMM with b = 1, BMM, GEMV with
// b = m = 1. Follows prelude.cl and pieces.cl.
//
// A work-group computes TILE outputs along n for TILE_M rows m (GEMM: TILE, else 1), STEP values of k at a time, which it
// stages in local memory with zeros beyond every edge; only stores are guarded. So a launch costs what it would cost
// with n, k and, for GEMM, m rounded up. Each of the (TILE / VECTOR) x (TILE_M / ITEM_M) items holds VECTOR neighbours
// along n of ITEM_M rows.

#ifndef TILE_M
#define TILE_M 1
#endif
#ifndef ITEM_M
#define ITEM_M 1
#endif

#define ITEMS_N (TILE / VECTOR)
#define ITEMS_M (TILE_M / ITEM_M)

// Stage TILE_M rows of activations as [STEP][TILE_M].
void stage_activations(local float *tile, global const float *rows, int first_row, int m, int first, int k, int item) {
    for (int i = item; i < TILE_M * PIECES; i += ITEMS_N * ITEMS_M) {
        const int row = first_row + i % TILE_M, at = i / TILE_M * PIECE;
        const float8 piece = float_piece(rows + (size_t)min(row, m - 1) * k, first + at, k);
        store_column(select((float8)(0.0f), piece, (int8)(row < m ? -1 : 0)), tile + at * TILE_M + i % TILE_M, TILE_M);
    }
}

// Store the VECTOR neighbours from `first_n` on that are not beyond n.
void store_outputs(VEC sums, global float *row, int first_n, int n) {
    float values[VECTOR];
    STORE_VEC(sums, values);
    for (int j = 0; j < VECTOR; ++j) {
        const int this_n = first_n + j;
        if (this_n < n) row[this_n] = values[j];
    }
}

kernel void tiled(global const STORED_VALUE *weights, global const float *activations, global float *out, const int m,
                  const int n, const int k) {
    local float weight_tile[STEP * TILE], activation_tile[STEP * TILE_M];
    const int item_n = get_local_id(0), item_m = get_local_id(1), item = item_m * ITEMS_N + item_n;
    const int first_n = get_group_id(0) * TILE, first_m = get_group_id(1) * TILE_M;
    const size_t b = get_group_id(2);
    weights += b * n * row_length(k);
    activations += b * m * k;
    out += b * m * n;
    VEC sums[ITEM_M];
    for (int r = 0; r < ITEM_M; ++r) sums[r] = 0.0f;
    for (int first_k = 0; first_k < k; first_k += STEP) {
        stage_columns(weight_tile, weights, first_n, n, first_k, k, item, ITEMS_N * ITEMS_M);
        stage_activations(activation_tile, activations, first_m, m, first_k, k, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < STEP; ++i) {
            const VEC weight = LOAD_VEC(weight_tile + i * TILE + item_n * VECTOR);
            for (int r = 0; r < ITEM_M; ++r) sums[r] += weight * activation_tile[i * TILE_M + item_m + r * ITEMS_M];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = 0; r < ITEM_M; ++r) {
        const int this_m = first_m + item_m + r * ITEMS_M;
        if (this_m < m) store_outputs(sums[r], out + (size_t)this_m * n, first_n + item_n * VECTOR, n);
    }
}
