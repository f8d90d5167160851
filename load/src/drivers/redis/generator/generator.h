/* A load generator for Redis on this machine: one thread, one epoll loop, no work that grows with the
 * number of connections. main.c has its arguments, load.c what it does. */
#ifndef GENERATOR_H
#define GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum mode {
    MODE_SHORT, /* connect, one command, its reply, close; again */
    MODE_LONG,  /* connect once; one command after the other */
    MODE_HOLD,  /* connect, one PING each, then stay until SIGTERM */
};

struct options {
    enum mode mode;
    struct sockaddr_storage target; /* a Unix socket, or a port of 127.0.0.1 */
    socklen_t target_length;
    unsigned connections; /* at the same time */
    double seconds;       /* 0: until `total` */
    uint64_t total;       /* 0: until `seconds` */
    double rate;          /* MODE_LONG: commands per second in all; 0: as fast as it goes */
    uint64_t keys;        /* how many different keys stand for {key} */
    int command_length;
    char **command;
};

/* The command as Redis reads it. Each {key} in it is a key that next_payload() changes. */
void build_payload(const struct options *options);
const char *next_payload(size_t *length);

/* One reply, in as many pieces as it comes. */
struct reply {
    uint32_t pending; /* elements that are still missing; 0: complete */
    int64_t skip;     /* bytes of the current bulk string that are still missing */
    uint8_t line_length;
    char line[64]; /* beginning of the current line */
};

void reply_begin(struct reply *reply);
/* Sets *error if the reply is an error. */
void reply_read(struct reply *reply, const char *bytes, size_t length, bool *error);

enum step { STEP_CONNECT, STEP_SEND, STEP_RECEIVE, STEP_CLOSED, STEPS };
#define MAX_ERRNO 256
struct counts {
    uint64_t completed, reply_errors;
    uint64_t errors[STEPS][MAX_ERRNO];
};

void latency_record(uint64_t microseconds);
/* Seconds in which this process ran or was ready to run; 0 where the kernel does not say. */
double read_demand(void);
/* A line of JSON. */
void print_result(const struct counts *counts, double seconds, double demand);

/* Runs until the end that the options set; prints the result. */
int run_load(const struct options *options);

/* Becomes `command`, if possible in a network namespace that has only a loopback: with ports and closed
 * connections (TIME_WAIT) of its own, and without the connection tracking of a container engine or a
 * firewall. Sets ONETRIP_NETWORK to `own` or `shared`. */
int isolate(char **command);

#endif
