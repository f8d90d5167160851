#include "generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {key} becomes `key:` and twelve digits, as redis-benchmark's, so that all keys have one length. */
#define KEY_DIGITS 12
#define MAX_KEYS 128

static char payload[64 * 1024];
static size_t payload_length;
static char *digits[MAX_KEYS];
static size_t digits_count;
static uint64_t key_range;

static void refuse_if(bool too_long) {
    if (!too_long) return;
    fputs("generator: the command is too long\n", stderr);
    exit(2);
}

static void append(const char *bytes, size_t length) {
    refuse_if(payload_length + length > sizeof payload);
    memcpy(payload + payload_length, bytes, length);
    payload_length += length;
}

void build_payload(const struct options *options) {
    char header[32];
    key_range = options->keys;
    append(header, (size_t)snprintf(header, sizeof header, "*%d\r\n", options->command_length));
    for (int i = 0; i < options->command_length; i++) {
        const char *argument = options->command[i];
        bool key = strcmp(argument, "{key}") == 0;
        refuse_if(key && digits_count == MAX_KEYS);
        if (key) argument = "key:000000000000";
        size_t length = strlen(argument);
        append(header, (size_t)snprintf(header, sizeof header, "$%zu\r\n", length));
        append(argument, length);
        if (key) digits[digits_count++] = payload + payload_length - KEY_DIGITS;
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

void reply_begin(struct reply *reply) {
    reply->pending = 1;
    reply->skip = 0;
    reply->line_length = 0;
}

/* A line of the protocol is complete: an element, or the length of one. */
static void take_line(struct reply *reply, bool *error) {
    reply->line[reply->line_length] = '\0';
    reply->line_length = 0;
    long long length = strtoll(reply->line + 1, NULL, 10);
    if (reply->line[0] == '$' && length >= 0) {
        reply->skip = length + 2;
        return;
    }
    if (reply->line[0] == '*' && length > 0) reply->pending += (uint32_t)length;
    if (reply->line[0] == '-') *error = true;
    reply->pending--;
}

void reply_read(struct reply *reply, const char *bytes, size_t length, bool *error) {
    for (size_t at = 0; at < length && reply->pending > 0;) {
        if (reply->skip > 0) {
            size_t take = length - at;
            if ((int64_t)take > reply->skip) take = (size_t)reply->skip;
            reply->skip -= (int64_t)take;
            at += take;
            if (reply->skip == 0) reply->pending--;
            continue;
        }
        char byte = bytes[at++];
        if (byte == '\n') take_line(reply, error);
        else if (reply->line_length < sizeof reply->line - 1) reply->line[reply->line_length++] = byte;
    }
}
