/* A load generator for Redis on this machine: one thread, one epoll loop, no work that grows with the
 * number of connections. See options.c for what it takes, load.c for what it does. */
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
    struct sockaddr_storage target;
    socklen_t target_length;
    bool unix_socket;
    unsigned sources;      /* TCP: connections come from 127.0.0.1 to 127.0.0.<sources> in turn */
    unsigned connections;  /* at the same time */
    double seconds;        /* 0: until `total` */
    uint64_t total;        /* 0: until `seconds` */
    double rate;           /* MODE_LONG: commands per second in all; 0: as fast as it goes */
    uint64_t keys;         /* how many different keys stand for {key} */
    int command_length;
    char **command;
};

/* Ends the process with a message if an argument is wrong, or leads away from this machine. */
struct options parse_options(int argc, char **argv);

/* The command as Redis reads it. Each {key} in it is a key that next_payload() changes. */
void build_payload(const struct options *options);
const char *next_payload(size_t *length);

/* Reads one reply, in as many pieces as it comes. */
struct reply {
    uint32_t pending; /* elements that are still missing; 0: complete */
    int64_t skip;     /* bytes of the current bulk string that are still missing */
    uint8_t line_length;
    char line[64]; /* beginning of the current line */
};

void reply_begin(struct reply *reply);
/* Returns how many of the bytes belong to the reply; sets *error if it is an error of Redis's. */
size_t reply_read(struct reply *reply, const char *bytes, size_t length, bool *error);

/* What happened. */
enum step { STEP_CONNECT, STEP_SEND, STEP_RECEIVE, STEP_CLOSED, STEPS };
#define MOST_ERRNO 256
struct counts {
    uint64_t completed, reply_errors, backlog_full;
    uint64_t errors[STEPS][MOST_ERRNO];
};

/* CPU time of this process and how long it waited for a core, in seconds; the latter is 0 where the
 * kernel does not tell. */
struct cpu_time {
    double ran, waited;
};
struct cpu_time read_cpu(void);
/* A line of JSON. */
void print_result(const struct counts *counts, double seconds, struct cpu_time before);

/* Latencies in microseconds: exact below 0.1 s, to the millisecond above. */
void latency_record(uint64_t microseconds);
void latency_print(void);

/* Runs until the end that the options set; prints the result as a line of JSON. */
int run_load(const struct options *options);

/* Becomes `command`, if it may, in a network namespace where there is only a loopback: with ports and
 * closed connections (TIME_WAIT) of its own, and without the connection tracking that a container
 * engine or a firewall brings. If it may not, the command runs where it would have anyway. ONETRIP_NETWORK, `own` or
 * `shared`, tells the command which. */
int isolate(char **command);

#endif
