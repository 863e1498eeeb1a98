/* What the layer knows of the program's objects, by their handle: found without a lock, changed under one.
 *
 * An item stands in a chain of its bucket.  Items that are taken out are used again, so a reader who walks a chain may
 * land in another one and miss what is there; it never reads memory that is gone.  Hence two ways to find: `likely`,
 * whose miss proves nothing, and `surely`, which looks again under the lock.
 */
#ifndef PERFSUITE_OPENCL_SHELF_H
#define PERFSUITE_OPENCL_SHELF_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PS_CL_SHELF_BITS = 12 };

/* The head of every item; the shelf's own. */
typedef struct ps_cl_item {
    _Atomic(struct ps_cl_item *) next;
    _Atomic(uintptr_t) key; /* the handle; 0 while it stands in no chain */
    struct ps_cl_item *next_free;
    uint32_t n_references; /* that the program holds */
} ps_cl_item;

typedef struct ps_cl_shelf {
    _Atomic(ps_cl_item *) buckets[1 << PS_CL_SHELF_BITS];
    pthread_mutex_t lock;
    ps_cl_item *free;
    size_t item_bytes;
} ps_cl_shelf;

#define PS_CL_SHELF(type) {.lock = PTHREAD_MUTEX_INITIALIZER, .item_bytes = sizeof(type)}

static inline _Atomic(ps_cl_item *) *ps_cl_shelf_bucket(ps_cl_shelf *shelf, uintptr_t key) {
    return &shelf->buckets[((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PS_CL_SHELF_BITS)];
}

static inline ps_cl_item *ps_cl_shelf_find_likely(ps_cl_shelf *shelf, const void *handle) {
    uintptr_t key = (uintptr_t)handle;
    ps_cl_item *item = atomic_load_explicit(ps_cl_shelf_bucket(shelf, key), memory_order_acquire);
    while (item && atomic_load_explicit(&item->key, memory_order_acquire) != key) {
        item = atomic_load_explicit(&item->next, memory_order_acquire);
    }
    return item;
}

ps_cl_item *ps_cl_shelf_find_surely(ps_cl_shelf *shelf, const void *handle);

/* An item to be filled and published, of zeros or as its last user left it (the head apart); NULL without memory. */
ps_cl_item *ps_cl_shelf_take(ps_cl_shelf *shelf);

/* Puts a filled item under its handle with one reference; returns the item that stood there before, taken out. */
ps_cl_item *ps_cl_shelf_publish(ps_cl_shelf *shelf, ps_cl_item *item, const void *handle);

/* Gives back an item that stands in no chain. */
void ps_cl_shelf_give_back(ps_cl_shelf *shelf, ps_cl_item *item);

void ps_cl_shelf_retain(ps_cl_shelf *shelf, const void *handle);

/* Drops one reference; with the last one the item is taken out and returned, to be given back. */
ps_cl_item *ps_cl_shelf_release(ps_cl_shelf *shelf, const void *handle);

/* Calls `visit` for every item, under the lock. */
void ps_cl_shelf_each(ps_cl_shelf *shelf, void (*visit)(ps_cl_item *item, void *context), void *context);

#endif
