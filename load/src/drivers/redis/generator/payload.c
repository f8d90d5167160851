#include "generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {key} becomes `key:` and twelve digits, so that all keys have one length, as redis-benchmark's. */
#define PLACE "{key}"
#define KEY_DIGITS 12
#define MOST_KEYS 128

static char payload[64 * 1024];
static size_t payload_length;
static char *digits[MOST_KEYS];
static size_t digits_count;
static uint64_t key_range;

static void append(const char *bytes, size_t length) {
    if (payload_length + length > sizeof payload) {
        fputs("generator: the command is too long\n", stderr);
        exit(2);
    }
    memcpy(payload + payload_length, bytes, length);
    payload_length += length;
}

static void append_key(void) {
    append("key:", 4);
    if (digits_count == MOST_KEYS) {
        fputs("generator: too many keys in the command\n", stderr);
        exit(2);
    }
    digits[digits_count++] = payload + payload_length;
    append("000000000000", KEY_DIGITS);
}

void build_payload(const struct options *options) {
    char header[32];
    key_range = options->keys;
    append(header, (size_t)snprintf(header, sizeof header, "*%d\r\n", options->command_length));
    for (int i = 0; i < options->command_length; i++) {
        const char *argument = options->command[i];
        bool key = strcmp(argument, PLACE) == 0;
        size_t length = key ? 4 + KEY_DIGITS : strlen(argument);
        append(header, (size_t)snprintf(header, sizeof header, "$%zu\r\n", length));
        if (key) append_key();
        else append(argument, length);
        append("\r\n", 2);
    }
}

static uint64_t next_random(void) { /* xorshift64; the same sequence in every run */
    static uint64_t state = 88172645463325252ULL;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

const char *next_payload(size_t *length) {
    for (size_t i = 0; key_range > 1 && i < digits_count; i++) {
        uint64_t key = next_random() % key_range;
        for (int place = KEY_DIGITS - 1; place >= 0; place--, key /= 10)
            digits[i][place] = (char)('0' + key % 10);
    }
    *length = payload_length;
    return payload;
}
