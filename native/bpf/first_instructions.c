#include "first_instructions.h"

#include <stdbool.h>
#include <string.h>

/* Registers by their numbers in an instruction. */
enum { RDX = 2, RSI = 6, RDI = 7, NO_REGISTER = -1 };

typedef struct instruction {
    uint32_t n_bytes; /* 0: not one of those that are known here */
    bool is_emulated;
    int written; /* register, or NO_REGISTER */
} instruction;

/* The operand bytes: ModR/M, SIB, displacement. */
typedef struct operands {
    uint32_t n_bytes;
    int reg, rm; /* rm: NO_REGISTER where it is memory */
    int digit;   /* what selects among instructions of a group */
} operands;

static bool read_operands(const uint8_t *at, size_t n_left, uint8_t rex, operands *found) {
    if (n_left < 2) {
        return false;
    }
    int mode = at[0] >> 6, rm = at[0] & 7;
    bool has_sib = mode != 3 && rm == 4;
    uint32_t displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    if (mode == 0 && (rm == 5 || (has_sib && (at[1] & 7) == 5))) {
        displacement = 4;
    }
    found->n_bytes = 1 + has_sib + displacement;
    found->digit = at[0] >> 3 & 7;
    found->reg = found->digit | (rex & 4) << 1;
    found->rm = mode == 3 ? rm | (rex & 1) << 3 : NO_REGISTER;
    return true;
}

static bool is_among(uint8_t opcode, const char *opcodes, size_t n_opcodes) {
    return memchr(opcodes, opcode, n_opcodes) != NULL;
}

#define AMONG(opcode, opcodes) is_among(opcode, opcodes, sizeof(opcodes) - 1)

/* One byte of opcode, then operands. */
static void decode_plain(const uint8_t *at, size_t n_left, uint8_t rex, bool is_short, instruction *found) {
    operands operands;
    uint8_t opcode = at[0];
    uint32_t immediate = opcode == 0x81 || opcode == 0xc7 ? (is_short ? 2 : 4) : AMONG(opcode, "\x80\x83\xf6") ? 1 : 0;
    if (!read_operands(at + 1, n_left - 1, rex, &operands)) {
        return;
    }
    bool is_test = AMONG(opcode, "\x84\x85\x38\x39\x3a\x3b") || (opcode == 0xf6 && operands.digit == 0) ||
                   (AMONG(opcode, "\x80\x81\x83") && operands.digit == 7);
    bool writes_reg = AMONG(opcode, "\x8b\x8d\x63\x03\x2b\x33\x0b\x23");
    bool writes_rm = AMONG(opcode, "\x89\x01\x29\x31\x09\x21\x80\x81\x83") || (opcode == 0xc7 && operands.digit == 0);
    bool is_push = opcode == 0xff && operands.digit == 6;
    if (is_test || writes_reg || writes_rm || is_push) {
        found->n_bytes = 1 + operands.n_bytes + immediate;
        found->written = is_test || is_push ? NO_REGISTER : writes_reg ? operands.reg : operands.rm;
    }
}

/* Two bytes of opcode: widening moves, and far conditional jumps. */
static void decode_extended(const uint8_t *at, size_t n_left, uint8_t rex, instruction *found) {
    operands operands;
    if (n_left >= 2 && at[1] >= 0x80 && at[1] <= 0x8f) {
        *found = (instruction){.n_bytes = 6, .is_emulated = true};
    } else if (n_left >= 2 && AMONG(at[1], "\xb6\xb7\xbe\xbf") && read_operands(at + 2, n_left - 2, rex, &operands)) {
        *found = (instruction){.n_bytes = 2 + operands.n_bytes, .written = operands.reg};
    }
}

static instruction decode(const uint8_t *at, size_t n_left) {
    static const uint8_t ENDBR64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    instruction found = {.written = NO_REGISTER};
    if (n_left >= sizeof(ENDBR64) && memcmp(at, ENDBR64, sizeof(ENDBR64)) == 0) {
        found.n_bytes = sizeof(ENDBR64);
        return found;
    }
    bool is_short = n_left && *at == 0x66;
    uint32_t n_prefixes = is_short;
    uint8_t rex = n_prefixes < n_left && (at[n_prefixes] & 0xf0) == 0x40 ? at[n_prefixes] : 0;
    n_prefixes += rex != 0;
    if (n_prefixes >= n_left) {
        return found;
    }
    const uint8_t *opcode = at + n_prefixes;
    size_t n_rest = n_left - n_prefixes;
    if (!is_short && *opcode >= 0x50 && *opcode <= 0x57) {
        found = (instruction){.n_bytes = 1, .is_emulated = true};
    } else if (!n_prefixes && ((*opcode >= 0x70 && *opcode <= 0x7f) || *opcode == 0xeb)) {
        found = (instruction){.n_bytes = 2, .is_emulated = true};
    } else if (!n_prefixes && (*opcode == 0xe8 || *opcode == 0xe9)) {
        found = (instruction){.n_bytes = 5, .is_emulated = true};
    } else if (*opcode == 0x0f) {
        decode_extended(opcode, n_rest, rex, &found);
    } else {
        decode_plain(opcode, n_rest, rex, is_short, &found);
    }
    found.n_bytes += found.n_bytes ? n_prefixes : 0;
    return found;
}

uint32_t ps_cheap_place(const uint8_t *code, size_t n_bytes) {
    for (uint32_t at = 0; at < n_bytes;) {
        instruction next = decode(code + at, n_bytes - at);
        bool takes_argument = next.written == RDI || next.written == RSI || next.written == RDX;
        if (next.is_emulated) {
            return at;
        }
        if (!next.n_bytes || takes_argument) {
            break;
        }
        at += next.n_bytes;
    }
    return 0;
}
