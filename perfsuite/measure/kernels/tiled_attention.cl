// One query token against a cache: out[h] = softmax(scale * queries[h] . keys) . values, a work-group a head, TILE
// positions at a time with the online softmax in F32. Follows prelude.cl and pieces.cl.
//
//   queries, out   [query head][head]               F32
//   keys, values   [cache head][position][head]     as STORED
//
// heads / kv_heads query heads in succession share a head of the cache. Steps of TILE positions and of STEP values of
// a head are staged in local memory with zeros beyond every edge, so that a launch costs what it would cost with
// context and head rounded up.
//
// *Online softmax*: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.

// The longest head, rounded up to whole steps.
#ifndef MOST_HEAD
#define MOST_HEAD 1024
#endif

#define ITEMS (TILE / VECTOR)

// The scores of this item's VECTOR positions, unscaled; every item must call.
VEC item_scores(local float *tile, local const float *query, global const STORED_VALUE *keys, int first, int context,
                int head, int item) {
    VEC scores = 0.0f;
    for (int at = 0; at < head; at += STEP) {
        stage_columns(tile, keys, first, context, at, head, item, ITEMS);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < STEP; ++i) scores += query[at + i] * LOAD_VEC(tile + i * TILE + item * VECTOR);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scores;
}

// mixed = correction * mixed + weights . values of TILE positions; every item must call.
void mix_values(local float *tile, local float *mixed, local const float *weights, float correction,
                global const STORED_VALUE *values, int first, int context, int head, int item) {
    for (int at = 0; at < head; at += STEP) {
        for (int i = item; i < TILE * PIECES; i += ITEMS) {
            const int row = i % TILE, part = i / TILE * PIECE;
            vstore8(row_piece(values, first + row, context, at + part, head), 0, tile + row * STEP + part);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item * VECTOR; i < STEP; i += ITEMS * VECTOR) {
            VEC sums = correction * LOAD_VEC(mixed + at + i);
            for (int row = 0; row < TILE; ++row) sums += weights[row] * LOAD_VEC(tile + row * STEP + i);
            STORE_VEC(sums, mixed + at + i);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void tiled_attention(global const STORED_VALUE *keys, global const STORED_VALUE *values,
                            global const float *queries, global float *out, const int heads, const int kv_heads,
                            const int head, const int context, const float scale) {
    local float tile[STEP * TILE], query[MOST_HEAD], mixed[MOST_HEAD], weights[TILE];
    const int item = get_local_id(0), this_head = get_group_id(0);
    const size_t cached = (size_t)(this_head / (heads / kv_heads)) * context * row_length(head);
    const int padded_head = (head + STEP - 1) / STEP * STEP;
    for (int i = item * PIECE; i < padded_head; i += ITEMS * PIECE) {
        vstore8(float_piece(queries + (size_t)this_head * head, i, head), 0, query + i);
        vstore8((float8)(0.0f), 0, mixed + i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float largest = -INFINITY, sum = 0.0f;
    for (int first = 0; first < context; first += TILE) {
        const VEC scores = scale * item_scores(tile, query, keys + cached, first, context, head, item);
        STORE_VEC(scores, weights + item * VECTOR);
        for (int j = item * VECTOR; j < (item + 1) * VECTOR; ++j)
            weights[j] = first + j < context ? weights[j] : -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        const float before = largest;
        for (int j = 0; j < TILE; ++j) largest = fmax(largest, weights[j]);
        barrier(CLK_LOCAL_MEM_FENCE);
        STORE_VEC(exp(LOAD_VEC(weights + item * VECTOR) - largest), weights + item * VECTOR);
        barrier(CLK_LOCAL_MEM_FENCE);
        const float correction = exp(before - largest);
        sum *= correction;
        for (int j = 0; j < TILE; ++j) sum += weights[j];
        mix_values(tile, mixed, weights, correction, values + cached, first, context, head, item);
    }
    for (int i = item; i < head; i += ITEMS) out[(size_t)this_head * head + i] = mixed[i] / sum;
}
