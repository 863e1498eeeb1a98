/* The helper's command line: what is taken, and that each refusal names the option. */
#include "bpf/options.h"

#include <string.h>

#include "check.h"

enum { MAX_WORDS = 32, MAX_BYTES = 1024 };

static ps_options options;
static ps_problem problem;

static bool parse(const char *line) {
    static char text[MAX_BYTES];
    char *words[MAX_WORDS] = {"perfsuite-bpf"};
    int n_words = 1;
    snprintf(text, sizeof(text), "%s", line);
    problem.text[0] = '\0';
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        words[n_words++] = word;
    }
    return ps_parse_options(n_words, words, &options, &problem);
}

static bool refuses(const char *line, const char *reason) { return !parse(line) && strstr(problem.text, reason); }

#define LAYOUT " --tensor-bytes 336 --ne-at 16 --nb-at 48 --op-at 80 --src-at 152 --n-src 10 --data-at 248"

TEST(a_whole_line_is_taken) {
    CHECK(parse("--pid 77 --levels 255 --buffer perf --buffer-bytes 0x10000 --floor-milli-tokens-per-s 5000 --statistics "
                "--expert-op 30 --counter cycles:0:0 --counter l3d_cache_refill:4:0x2a" LAYOUT));
    CHECK(options.action == PS_RECORD && options.pid == 77 && options.settings.tgid == 77 && options.levels == 255);
    CHECK(options.settings.buffer == PS_BPF_PERF && options.buffer_bytes == 65536 && options.with_statistics);
    CHECK(options.floor_milli_tokens_per_s == 5000 && options.settings.expert_op == 30);
    CHECK(options.n_counters == 2 && strcmp(options.counters[1].name, "l3d_cache_refill") == 0);
    CHECK(options.counters[1].type == 4 && options.counters[1].config == 0x2a);
    CHECK(options.settings.tensor_bytes == 336 && options.settings.src_at == 152 && options.settings.n_src == 10);
}

TEST(what_is_usual) {
    CHECK(parse("--pid 1"));
    CHECK(options.levels == PS_BPF_TOKEN && options.settings.buffer == PS_BPF_RING && !options.floor_milli_tokens_per_s);
    CHECK(options.settings.expert_op == 0xffffffff && options.drain_ms == 200);
    CHECK(parse("--version") && options.action == PS_VERSION);
    CHECK(parse("--check") && options.action == PS_CHECK);
}

TEST(what_is_refused) {
    CHECK(refuses("", "--pid"));
    CHECK(refuses("--pid", "--pid: no such option, or it lacks its value"));
    CHECK(refuses("--pid 0", "a number from 1"));
    CHECK(refuses("--pid -1", "a number from 1"));
    CHECK(refuses("--pid 12x", "--pid 12x"));
    CHECK(refuses("--pid 99999999999999999999", "--pid"));
    CHECK(refuses("--pid 1 --levels 256", "--levels 256"));
    CHECK(refuses("--pid 1 --buffer tape", "ring or perf"));
    CHECK(refuses("--pid 1 --nonsense 3", "--nonsense: no such option"));
    CHECK(refuses("--pid 1 --counter cycles", "NAME:TYPE:CONFIG"));
    CHECK(refuses("--pid 1 --counter :0:0", "NAME:TYPE:CONFIG"));
    CHECK(refuses("--pid 1 --counter a-name-of-more-than-thirty-one-letters:0:0", "shorter than 32"));
    CHECK(refuses("--pid 1 --counter switches:2:100", "types 0, 1, 3 and 4"));
    CHECK(refuses("--pid 1 --counter address:5:1", "types 0, 1, 3 and 4"));
    CHECK(refuses("--pid 1 --counter a:0:0 --counter a:0:0 --counter a:0:0 --counter a:0:0 --counter a:0:0 "
                  "--counter a:0:0 --counter a:0:0 --counter a:0:0 --counter a:0:0",
                  "more than 8 counters"));
}

/* No offset may lead out of the tensor, whose size bounds what the kernel's programs read. */
TEST(a_layout_that_does_not_fit_is_refused) {
    CHECK(refuses("--pid 1 --levels 8", "--tensor-bytes 0"));
    CHECK(refuses("--pid 1 --levels 128", "--tensor-bytes 0"));
    CHECK(refuses("--pid 1 --levels 8 --tensor-bytes 520", "--tensor-bytes 520"));
    CHECK(refuses("--pid 1 --levels 8 --tensor-bytes 336", "--tensor-bytes 336"));
    CHECK(refuses("--pid 1" LAYOUT " --src-at 264", "do not lie in it"));
    CHECK(refuses("--pid 1" LAYOUT " --src-at 153", "not aligned"));
    CHECK(refuses("--pid 1" LAYOUT " --data-at 336", "do not lie in it"));
    CHECK(refuses("--pid 1" LAYOUT " --tensor-bytes 340", "not aligned"));
    CHECK(refuses("--pid 1" LAYOUT " --n-src 17", "--n-src 17"));
}

/* What comes from outside is not printed as it is: a status line stays one line. */
TEST(a_problem_is_one_line) {
    CHECK(!ps_fail(&problem, "%s", "a\nb\033[2Jc"));
    CHECK(strcmp(problem.text, "a?b?[2Jc") == 0);
}
