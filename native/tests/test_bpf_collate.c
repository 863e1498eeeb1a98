/* Records of several processors come out in the order of time, and wait until older ones cannot come any more. */
#include <string.h>

#include "bpf/collate.h"
#include "check.h"

enum { N = 1000 };

static int64_t taken[N];
static int n_taken, n_allowed = N;

static bool take(void *context, const ps_bpf_record *record) {
    CHECK(n_taken < N && record->bytes >= sizeof(*record));
    taken[n_taken++] = record->ns;
    return n_taken <= n_allowed;
}

static void put(ps_collation *collation, int64_t ns, uint16_t n_extra) {
    char bytes[sizeof(ps_bpf_record) + 64] = {0};
    ps_bpf_record record = {.kind = PS_BPF_BARRIER, .bytes = (uint16_t)(sizeof(record) + n_extra), .ns = ns};
    memcpy(bytes, &record, sizeof(record));
    CHECK(ps_collate(collation, bytes, record.bytes));
}

TEST(records_come_out_in_the_order_of_time) {
    ps_collation collation = {0};
    CHECK(ps_collate_until(&collation, 100, take, NULL) && n_taken == 0);
    for (int i = 0; i < N / 2; i++) { /* one processor, then another */
        put(&collation, 2 * i, (uint16_t)(8 * (i % 9)));
    }
    for (int i = 0; i < N / 2; i++) {
        put(&collation, 2 * i + 1, 0);
    }
    CHECK(ps_collate_until(&collation, 99, take, NULL) && n_taken == 100);
    CHECK(ps_collate_until(&collation, 99, take, NULL) && n_taken == 100);
    CHECK(ps_collate_until(&collation, INT64_MAX, take, NULL) && n_taken == N);
    for (int i = 0; i < N; i++) {
        CHECK(taken[i] == i);
    }
    n_taken = 0;
    n_allowed = 0;
    put(&collation, 5, 0);
    CHECK(!ps_collate_until(&collation, 10, take, NULL)); /* whoever takes them has had enough */
    ps_collation_close(&collation);
}
