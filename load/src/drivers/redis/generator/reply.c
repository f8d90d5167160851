#include "generator.h"

#include <stdlib.h>
#include <string.h>

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
    switch (reply->line[0]) {
    case '$':
        if (length < 0) reply->pending--;
        else reply->skip = length + 2;
        break;
    case '*':
        if (length > 0) reply->pending += (uint32_t)length;
        reply->pending--;
        break;
    case '-':
        *error = true;
        reply->pending--;
        break;
    default: reply->pending--; /* + and : */
    }
}

size_t reply_read(struct reply *reply, const char *bytes, size_t length, bool *error) {
    size_t at = 0;
    while (at < length && reply->pending > 0) {
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
    return at;
}
