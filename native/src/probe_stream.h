/* The three stream loops for one vector width; included once per instruction set, hence without a guard.
 *
 * PS_STREAM(pattern)    the name of the function
 * PS_STREAM_TARGET      function attributes
 * PS_STREAM_BYTES       bytes of a vector
 */
#define PS_STREAM_JOIN_(a, b) a##b
#define PS_STREAM_JOIN(a, b) PS_STREAM_JOIN_(a, b)
#define ps_words PS_STREAM_JOIN(PS_STREAM(words), _vector)
#define ps_floats PS_STREAM_JOIN(PS_STREAM(floats), _vector)

typedef uint64_t ps_words __attribute__((vector_size(PS_STREAM_BYTES), may_alias));
typedef float ps_floats __attribute__((vector_size(PS_STREAM_BYTES), may_alias));

PS_STREAM_TARGET static uint64_t PS_STREAM(read)(void *a, const void *b, const void *c, size_t n_bytes) {
    (void)b, (void)c;
    const ps_words *from = a;
    ps_words sums[8] = {{0}};
    for (size_t i = 0; i < n_bytes / sizeof *from; i += 8) {
        _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; k++) {
            sums[k] ^= from[i + k];
        }
    }
    uint64_t sum = 0;
    for (size_t k = 0; k < 8; k++) {
        for (size_t lane = 0; lane < PS_STREAM_BYTES / sizeof(uint64_t); lane++) {
            sum ^= sums[k][lane];
        }
    }
    return sum;
}

PS_STREAM_TARGET static uint64_t PS_STREAM(copy)(void *a, const void *b, const void *c, size_t n_bytes) {
    (void)c;
    ps_words *to = a;
    const ps_words *from = b;
    for (size_t i = 0; i < n_bytes / sizeof *to; i += 8) {
        _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; k++) {
            ps_words words = from[i + k];
            PS_TOUCH(words); /* or it becomes a call of memcpy, whose stores may bypass the cache */
            to[i + k] = words;
        }
    }
    return 0;
}

PS_STREAM_TARGET static uint64_t PS_STREAM(triad)(void *a, const void *b, const void *c, size_t n_bytes) {
    ps_floats *to = a;
    const ps_floats *left = b;
    const ps_floats *right = c;
    for (size_t i = 0; i < n_bytes / sizeof *to; i += 8) {
        _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; k++) {
            to[i + k] = left[i + k] + PS_TRIAD_FACTOR * right[i + k];
        }
    }
    return 0;
}

#undef ps_floats
#undef ps_words
#undef PS_STREAM_JOIN
#undef PS_STREAM_JOIN_
#undef PS_STREAM_BYTES
#undef PS_STREAM_TARGET
#undef PS_STREAM
