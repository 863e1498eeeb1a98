// What the tiled kernels share: vectors of VECTOR values, and pieces of 8 values of rows that are stored as F32, F16 or
// ggml's blocks.
//
// STORED is ggml's number of the type that weights, keys and values are stored as. A piece beyond a row's end is read at
// the row's last value, a row beyond the last one at the last one, and zeros are selected in their place: an edge costs
// what the inside costs, and nothing outside of a buffer is read.

#define STORED_F32 0
#define STORED_F16 1
#define STORED_Q4_0 2
#define STORED_Q8_0 8
#define STORED_Q4_K 12

#ifndef STORED
#define STORED STORED_F32
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef VECTOR
#define VECTOR 4
#endif

// How far a work-group gets along the inner dimension at once, and its pieces.
#define STEP 32
#define PIECE 8
#define PIECES (STEP / PIECE)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VECTOR == 1
#define VEC float
#define LOAD_VEC(from) (*(from))
#define STORE_VEC(values, to) (*(to) = (values))
#else
#define VEC JOIN(float, VECTOR)
#define LOAD_VEC(from) JOIN(vload, VECTOR)(0, from)
#define STORE_VEC(values, to) JOIN(vstore, VECTOR)(values, 0, to)
#endif

// Eight values from `first` on, each by LOAD(index), zeros from `count` on.
#define CLAMPED(LOAD, first, count)                                                                                   \
    select((float8)(0.0f),                                                                                            \
           (float8)(LOAD(min(first, count - 1)), LOAD(min(first + 1, count - 1)), LOAD(min(first + 2, count - 1)),    \
                    LOAD(min(first + 3, count - 1)), LOAD(min(first + 4, count - 1)),                                 \
                    LOAD(min(first + 5, count - 1)), LOAD(min(first + 6, count - 1)),                                 \
                    LOAD(min(first + 7, count - 1))),                                                                 \
           first + (int8)(0, 1, 2, 3, 4, 5, 6, 7) < (int8)(count))

// The piece of an F32 row of `count` values that begins at `first`.
float8 float_piece(global const float *row, int first, int count) {
#define LOAD(i) row[i]
    return CLAMPED(LOAD, first, count);
#undef LOAD
}

#if STORED == STORED_F32

#define STORED_VALUE float
size_t row_length(int count) { return count; }
float8 stored_piece(global const float *row, int first, int count) { return float_piece(row, first, count); }

#elif STORED == STORED_F16

#define STORED_VALUE half
size_t row_length(int count) { return count; }
float8 stored_piece(global const half *row, int first, int count) {
#define LOAD(i) vload_half(i, row)
    return CLAMPED(LOAD, first, count);
#undef LOAD
}

#elif STORED == STORED_Q8_0

#define STORED_VALUE uchar
size_t row_length(int count) { return count / BLOCK_VALUES * Q8_0_BYTES; }
float8 stored_piece(global const uchar *row, int first, int count) {
    global const uchar *block = row + first / BLOCK_VALUES * Q8_0_BYTES;
    const char8 quants = vload8(0, (global const char *)block + 2 + first % BLOCK_VALUES);
    return block_scale(block) * convert_float8(quants);
}

#elif STORED == STORED_Q4_0

#define STORED_VALUE uchar
size_t row_length(int count) { return count / BLOCK_VALUES * Q4_0_BYTES; }
float8 stored_piece(global const uchar *row, int first, int count) {
    global const uchar *block = row + first / BLOCK_VALUES * Q4_0_BYTES;
    const uchar8 bytes = vload8(0, block + 2 + first % 16);
    const uchar8 nibbles = (bytes >> (uchar)(first % BLOCK_VALUES / 16 * 4)) & (uchar)15;
    return block_scale(block) * (convert_float8(nibbles) - 8.0f);
}

#elif STORED == STORED_Q4_K

// Q4_K: 256 values behind two F16 scales, 12 bytes of 6-bit scales and minima for 8 parts of 32 values, and nibbles, of
// which 32 bytes hold one part in their low halves and the next in their high ones. A value is
// scale * part_scale * nibble - scale_of_minima * part_minimum. The first four parts' 6 bits lie in the low bits of bytes
// 0 to 3 (scales) and 4 to 7 (minima); of the others 4 bits in bytes 8 to 11, the upper 2 in the high bits of the former.
#define Q4_K_VALUES 256
#define Q4_K_BYTES 144
#define STORED_VALUE uchar
size_t row_length(int count) { return count / Q4_K_VALUES * Q4_K_BYTES; }
float8 stored_piece(global const uchar *row, int first, int count) {
    global const uchar *block = row + first / Q4_K_VALUES * Q4_K_BYTES, *packed = block + 4;
    const int part = first % Q4_K_VALUES / 32, low = part % 4;
    const int is_high = part >= 4;
    const int four = packed[8 + low], scale_bits = packed[low], minimum_bits = packed[4 + low];
    const int part_scale = is_high ? (four & 15) | (scale_bits >> 6 << 4) : scale_bits & 63;
    const int part_minimum = is_high ? (four >> 4) | (minimum_bits >> 6 << 4) : minimum_bits & 63;
    const float scale = block_scale(block) * part_scale, minimum = block_scale(block + 2) * part_minimum;
    const uchar8 bytes = vload8(0, block + 16 + part / 2 * 32 + first % 32);
    return scale * convert_float8((bytes >> (uchar)(part % 2 * 4)) & (uchar)15) - minimum;
}

#endif

// Write a piece to a column of a [STEP][width] tile.
void store_column(float8 piece, local float *to, int width) {
    to[0] = piece.s0;
    to[width] = piece.s1;
    to[2 * width] = piece.s2;
    to[3 * width] = piece.s3;
    to[4 * width] = piece.s4;
    to[5 * width] = piece.s5;
    to[6 * width] = piece.s6;
    to[7 * width] = piece.s7;
}

// The piece of one of `n` stored rows, zeros for a row beyond them.
float8 row_piece(global const STORED_VALUE *rows, int row, int n, int first, int count) {
    const float8 piece = stored_piece(rows + (size_t)min(row, n - 1) * row_length(count), first, count);
    return select((float8)(0.0f), piece, (int8)(row < n ? -1 : 0));
}

// Stage TILE stored rows from `first_row` on, their STEP values from `first` on, as [STEP][TILE]; `items` items share it.
void stage_columns(local float *tile, global const STORED_VALUE *rows, int first_row, int n, int first, int count,
                   int item, int items) {
    for (int i = item; i < TILE * PIECES; i += items) {
        const int row = i % TILE, at = i / TILE * PIECE;
        store_column(row_piece(rows, first_row + row, n, first + at, count), tile + at * TILE + row, TILE);
    }
}
