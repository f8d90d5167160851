/* Builds requests in the Redis protocol and parses replies. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREPARED 4096            /* approximate number of requests with random keys */
#define PREPARED_BYTES (4 << 20) /* their approximate total size, to fit into the processor's cache */

/* A pipeline of commands, built before the run. */
struct request {
    char *bytes;
    size_t length;
    uint64_t *reply_length; /* of the first reply without an error; 0 if not known yet */
};

static struct request *requests;
static size_t request_count;
static unsigned pipeline; /* commands of a request */
static uint64_t key_range;

static uint64_t random_key(void) {
    static uint64_t state = 88172645463325252ULL; /* xorshift64; the same sequence in every run */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % key_range;
}

/* `{key}` becomes `key:` and twelve digits, like the keys of redis-benchmark; `{value:N}` becomes N bytes. */
static void append_argument(FILE *out, const char *argument) {
    size_t bytes;
    if (strcmp(argument, "{key}") == 0) {
        fprintf(out, "$16\r\nkey:%012" PRIu64 "\r\n", random_key());
    } else if (sscanf(argument, "{value:%zu}", &bytes) == 1) {
        fprintf(out, "$%zu\r\n", bytes);
        while (bytes-- > 0) putc_unlocked('x', out);
        fputs("\r\n", out);
    } else {
        fprintf(out, "$%zu\r\n%s\r\n", strlen(argument), argument);
    }
}

/* Appends the command that begins at argument `at`. Returns the index of the next command: after the `;`, or 0. */
static int append_command(FILE *out, char **arguments, int count, int at) {
    int end = at;
    while (end < count && strcmp(arguments[end], ";") != 0) end++;
    fprintf(out, "*%d\r\n", end - at);
    for (; at < end; at++) append_argument(out, arguments[at]);
    return end + 1 < count ? end + 1 : 0;
}

/* Builds the requests, which connections send in turn. The commands of the arguments follow each other in a cycle.
 * Requests that differ in keys only share the length of their replies. */
static void prepare_requests(char **arguments, int count) {
    size_t bytes = 0, kinds = 0;
    int at = 0;
    do {
        requests = realloc(requests, (request_count + 1) * sizeof *requests);
        if (!requests) exit(1);
        struct request *request = &requests[request_count++];
        FILE *out = open_memstream(&request->bytes, &request->length);
        if (!out) exit(1);
        for (unsigned i = 0; i < pipeline; i++) at = append_command(out, arguments, count, at);
        fclose(out);
        bytes += request->length;
        if (at == 0 && kinds == 0) kinds = request_count;
    } while (at != 0 || (key_range > 1 && request_count < PREPARED && bytes < PREPARED_BYTES));
    uint64_t *lengths = calloc(kinds, sizeof *lengths);
    if (!lengths) exit(1);
    for (size_t i = 0; i < request_count; i++) requests[i].reply_length = &lengths[i % kinds];
}

/* The state of the parser between two pieces of the replies to a request. */
struct reply {
    uint32_t pending; /* missing elements; 0 if complete */
    uint32_t errors;  /* error replies */
    int64_t skip;     /* missing bytes of the current bulk string */
    uint8_t line_length;
    char line[64]; /* beginning of the current line */
};

/* Handles a complete line of the protocol: an element, or the length of one. */
static void take_line(struct reply *reply) {
    reply->line[reply->line_length] = '\0';
    reply->line_length = 0;
    long long length = strtoll(reply->line + 1, NULL, 10);
    if (reply->line[0] == '$' && length >= 0) {
        reply->skip = length + 2;
        return;
    }
    if (reply->line[0] == '*' && length > 0) reply->pending += (uint32_t)length;
    if (reply->line[0] == '-') reply->errors++;
    reply->pending--;
}

static void read_reply(struct reply *reply, const char *bytes, size_t length) {
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
        if (byte == '\n') take_line(reply);
        else if (reply->line_length < sizeof reply->line - 1) reply->line[reply->line_length++] = byte;
    }
}
