// The two batched products of attention over an F16 cache, with grouped queries: `heads` query heads share `kv_heads`
// heads of the cache, heads / kv_heads in succession to each.
//
//   queries, mixed    [token][query head][head]      F32
//   keys, values      [position][cache head][head]   F16
//   scores, weights   [query head][token][position]  F32

// scores = K . q, unscaled. Global size: (positions or more, tokens, heads); one item a score.
kernel void bmm_kq(global const half *keys, global const float *queries, global float *scores, const int kv_heads,
                   const int positions, const int head) {
    const int position = get_global_id(0), token = get_global_id(1), query_head = get_global_id(2);
    const int tokens = get_global_size(1), heads = get_global_size(2);
    if (position >= positions) return;
    const int cache_head = query_head / (heads / kv_heads);
    global const float *query = queries + ((size_t)token * heads + query_head) * head;
    global const half *key = keys + ((size_t)position * kv_heads + cache_head) * head;
    float sum = 0.0f;
    int i = 0;
    for (; i + 8 <= head; i += 8) {
        const float8 products = vload_half8(0, key + i) * vload8(0, query + i);
        const float4 halves = products.lo + products.hi;
        sum += halves.x + halves.y + halves.z + halves.w;
    }
    for (; i < head; ++i) sum += vload_half(i, key) * query[i];
    scores[((size_t)query_head * tokens + token) * positions + position] = sum;
}

// mixed = weights . V. Global size: (head, tokens, heads); one item an output, neighbours read neighbouring values.
kernel void bmm_kqv(global const half *values, global const float *weights, global float *mixed, const int kv_heads,
                    const int positions, const int head) {
    const int i = get_global_id(0), token = get_global_id(1), query_head = get_global_id(2);
    const int tokens = get_global_size(1), heads = get_global_size(2);
    const int cache_head = query_head / (heads / kv_heads);
    global const float *weight = weights + ((size_t)query_head * tokens + token) * positions;
    global const half *value = values + (size_t)cache_head * head + i;
    float sum = 0.0f;
    for (int position = 0; position < positions; ++position)
        sum += weight[position] * vload_half((size_t)position * kv_heads * head, value);
    mixed[((size_t)token * heads + query_head) * head + i] = sum;
}
