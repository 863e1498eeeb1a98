#include "shelf.h"

#include <stdlib.h>
#include <string.h>

ps_cl_item *ps_cl_shelf_find_surely(ps_cl_shelf *shelf, const void *handle) {
    ps_cl_item *item = ps_cl_shelf_find_likely(shelf, handle);
    if (!item && handle) {
        pthread_mutex_lock(&shelf->lock);
        item = ps_cl_shelf_find_likely(shelf, handle);
        pthread_mutex_unlock(&shelf->lock);
    }
    return item;
}

ps_cl_item *ps_cl_shelf_take(ps_cl_shelf *shelf) {
    pthread_mutex_lock(&shelf->lock);
    ps_cl_item *item = shelf->free;
    if (item) {
        shelf->free = item->next_free;
    }
    pthread_mutex_unlock(&shelf->lock);
    return item ? item : (ps_cl_item *)calloc(1, shelf->item_bytes);
}

/* Under the lock. */
static ps_cl_item *take_out(ps_cl_shelf *shelf, uintptr_t key) {
    _Atomic(ps_cl_item *) *link = ps_cl_shelf_bucket(shelf, key);
    ps_cl_item *item = atomic_load_explicit(link, memory_order_relaxed);
    while (item && atomic_load_explicit(&item->key, memory_order_relaxed) != key) {
        link = &item->next;
        item = atomic_load_explicit(link, memory_order_relaxed);
    }
    if (item) {
        atomic_store_explicit(link, atomic_load_explicit(&item->next, memory_order_relaxed), memory_order_release);
        atomic_store_explicit(&item->key, 0, memory_order_release);
    }
    return item;
}

ps_cl_item *ps_cl_shelf_publish(ps_cl_shelf *shelf, ps_cl_item *item, const void *handle) {
    uintptr_t key = (uintptr_t)handle;
    _Atomic(ps_cl_item *) *bucket = ps_cl_shelf_bucket(shelf, key);
    pthread_mutex_lock(&shelf->lock);
    ps_cl_item *former = take_out(shelf, key);
    item->n_references = 1;
    atomic_store_explicit(&item->next, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_release);
    atomic_store_explicit(&item->key, key, memory_order_release);
    atomic_store_explicit(bucket, item, memory_order_release);
    pthread_mutex_unlock(&shelf->lock);
    return former;
}

void ps_cl_shelf_give_back(ps_cl_shelf *shelf, ps_cl_item *item) {
    if (item) {
        pthread_mutex_lock(&shelf->lock);
        item->next_free = shelf->free;
        shelf->free = item;
        pthread_mutex_unlock(&shelf->lock);
    }
}

void ps_cl_shelf_retain(ps_cl_shelf *shelf, const void *handle) {
    pthread_mutex_lock(&shelf->lock);
    ps_cl_item *item = ps_cl_shelf_find_likely(shelf, handle);
    if (item) {
        item->n_references++;
    }
    pthread_mutex_unlock(&shelf->lock);
}

ps_cl_item *ps_cl_shelf_release(ps_cl_shelf *shelf, const void *handle) {
    pthread_mutex_lock(&shelf->lock);
    ps_cl_item *item = ps_cl_shelf_find_likely(shelf, handle);
    if (item && --item->n_references == 0) {
        take_out(shelf, (uintptr_t)handle);
    } else {
        item = NULL;
    }
    pthread_mutex_unlock(&shelf->lock);
    return item;
}

void ps_cl_shelf_each(ps_cl_shelf *shelf, void (*visit)(ps_cl_item *, void *), void *context) {
    pthread_mutex_lock(&shelf->lock);
    for (size_t i = 0; i < (size_t)1 << PS_CL_SHELF_BITS; i++) {
        ps_cl_item *item = atomic_load_explicit(&shelf->buckets[i], memory_order_relaxed);
        for (; item; item = atomic_load_explicit(&item->next, memory_order_relaxed)) {
            visit(item, context);
        }
    }
    pthread_mutex_unlock(&shelf->lock);
}
