/* Takes levels off while the engine decodes below a wanted speed, and puts them back when it has recovered.
 *
 * The speed is the median over the last few intervals from one one-token decode to the next, so that a pause between
 * two requests does not count. Below the floor, the dearest stage that is on goes: counters and ends, then operators,
 * then threads, then graphs; tokens stay. What a stage cost shows when it goes; it comes back once the speed, less that
 * cost, has been clearly above the floor for a while. If it has to go again soon, the while doubles.
 */
#ifndef PERFSUITE_BPF_FLOOR_H
#define PERFSUITE_BPF_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

enum { PS_FLOOR_STAGES = 4, PS_FLOOR_SAMPLES = 7, PS_FLOOR_IGNORED = 3 };

typedef struct ps_floor_stage {
    uint32_t levels;
    uint32_t off;            /* those of them that are off on our account */
    double left_ratio;       /* of the speed, when the stage is on; 1: it costs nothing; 0: not known yet */
    int64_t hold_ns;         /* how long the speed must suffice */
    int64_t changed_ns;      /* when it last went or came back */
    double milli_tokens_per_s_when_taken; /* the speed with it on */
} ps_floor_stage;

typedef struct ps_floor {
    uint64_t floor_milli_tokens_per_s; /* tokens/s in thousandths; 0: nothing is ever taken off */
    uint32_t levels;             /* what should be on now */
    double milli_tokens_per_s;         /* the last speed; 0: not known */
    int64_t intervals_ns[PS_FLOOR_SAMPLES];
    uint32_t n_intervals; /* since the last change */
    int64_t previous_ns;  /* of the last one-token decode; 0: none */
    int64_t enough_since_ns;
    ps_floor_stage stages[PS_FLOOR_STAGES];
} ps_floor;

void ps_floor_begin(ps_floor *floor, uint64_t floor_milli_tokens_per_s, uint32_t levels);

/* Somebody asked for other levels: those are on. */
void ps_floor_ask(ps_floor *floor, uint32_t levels);

/* A decode of n_tokens begins; true where `levels` has changed. */
bool ps_floor_decode(ps_floor *floor, int64_t ns, int64_t n_tokens);

#endif
