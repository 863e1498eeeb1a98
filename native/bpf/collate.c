#include "collate.h"

#include <stdlib.h>
#include <string.h>

static bool grow(void **memory, size_t *capacity, size_t needed, size_t item_bytes) {
    if (needed <= *capacity) {
        return true;
    }
    size_t larger = *capacity * 2 > needed ? *capacity * 2 : needed + 4096;
    void *grown = realloc(*memory, larger * item_bytes);
    if (grown) {
        *memory = grown;
        *capacity = larger;
    }
    return grown != NULL;
}

bool ps_collate(ps_collation *c, const void *record, size_t n_bytes) {
    void *bytes = c->bytes, *held = c->held;
    bool has_room = grow(&bytes, &c->capacity_bytes, c->n_bytes + n_bytes, 1);
    c->bytes = bytes;
    has_room = has_room && grow(&held, &c->capacity_held, c->n_held + 1, sizeof(*c->held));
    c->held = held;
    if (!has_room) {
        return false;
    }
    memcpy(c->bytes + c->n_bytes, record, n_bytes); /* may lie where no 8 bytes are aligned; the copy does not */
    c->held[c->n_held++] = (ps_held){.ns = ((const ps_bpf_record *)(c->bytes + c->n_bytes))->ns, .at = c->n_bytes};
    c->n_bytes += n_bytes;
    return true;
}

static int by_time(const void *left, const void *right) {
    const ps_held *a = left, *b = right;
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *left, const void *right) {
    const ps_held *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

/* Moves what was not handed on to the front, in the order in which it came. */
static void keep_from(ps_collation *c, size_t n_taken) {
    c->n_held -= n_taken;
    memmove(c->held, c->held + n_taken, c->n_held * sizeof(*c->held));
    qsort(c->held, c->n_held, sizeof(*c->held), by_place);
    c->n_bytes = 0;
    for (size_t i = 0; i < c->n_held; i++) {
        size_t n_bytes = ((const ps_bpf_record *)(c->bytes + c->held[i].at))->bytes;
        memmove(c->bytes + c->n_bytes, c->bytes + c->held[i].at, n_bytes);
        c->held[i].at = c->n_bytes;
        c->n_bytes += n_bytes;
    }
}

bool ps_collate_until(ps_collation *c, int64_t ns, ps_take_record take, void *context) {
    size_t n_taken = 0;
    bool is_taken = true;
    if (c->n_held) {
        qsort(c->held, c->n_held, sizeof(*c->held), by_time);
    }
    while (is_taken && n_taken < c->n_held && c->held[n_taken].ns <= ns) {
        is_taken = take(context, (const ps_bpf_record *)(c->bytes + c->held[n_taken].at));
        n_taken++;
    }
    if (n_taken) {
        keep_from(c, n_taken);
    }
    return is_taken;
}

void ps_collation_close(ps_collation *c) {
    free(c->bytes);
    free(c->held);
    memset(c, 0, sizeof(*c));
}
