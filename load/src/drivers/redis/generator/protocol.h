/* The command as Redis reads it, and its reply. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_DIGITS 12 /* {key} becomes `key:` and so many digits, as redis-benchmark's */
#define MAX_KEYS 128

static char payload[64 * 1024];
static size_t payload_length;
static char *digits[MAX_KEYS];
static size_t digits_count;
static uint64_t key_range;

static void append(const char *bytes, size_t length) {
    if (payload_length + length > sizeof payload || digits_count == MAX_KEYS) {
        fputs("the command is too long\n", stderr);
        exit(2);
    }
    memcpy(payload + payload_length, bytes, length);
    payload_length += length;
}

static void build_payload(char **arguments, int count) {
    char header[32];
    append(header, (size_t)sprintf(header, "*%d\r\n", count));
    for (int i = 0; i < count; i++) {
        bool key = strcmp(arguments[i], "{key}") == 0;
        const char *argument = key ? "key:000000000000" : arguments[i];
        size_t length = strlen(argument);
        append(header, (size_t)sprintf(header, "$%zu\r\n", length));
        append(argument, length);
        if (key) digits[digits_count++] = payload + payload_length - KEY_DIGITS;
        append("\r\n", 2);
    }
}

static void choose_keys(void) {
    static uint64_t state = 88172645463325252ULL; /* xorshift64; the same sequence in every run */
    for (size_t i = 0; key_range > 1 && i < digits_count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint64_t key = state % key_range;
        for (int place = KEY_DIGITS - 1; place >= 0; place--, key /= 10)
            digits[i][place] = (char)('0' + key % 10);
    }
}

/* One reply, in as many pieces as it comes. */
struct reply {
    uint32_t pending; /* elements that are still missing; 0: complete */
    int64_t skip;     /* bytes of the current bulk string that are still missing */
    uint8_t line_length;
    char line[64]; /* beginning of the current line */
};

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

/* Sets *error if the reply is an error. */
static void read_reply(struct reply *reply, const char *bytes, size_t length, bool *error) {
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
