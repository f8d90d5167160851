#include "generator.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24 /* Linux 4.2 */
#endif

#define EVENTS 512
#define RETRY_MS 1       /* after a failure to connect, so that a dead server is not hammered */
#define OPENING_AT_ONCE 128 /* in a fleet that is held: below any backlog */
#define MOST_ERRNO 256

enum step { STEP_CONNECT, STEP_SEND, STEP_RECEIVE, STEP_CLOSED, STEPS };
static const char *step_names[STEPS] = {"connect", "send", "receive", "closed"};

struct connection {
    int fd;
    bool sent;
    uint64_t began; /* microseconds */
    struct reply reply;
};

static const struct options *options;
static struct connection *connections;
static unsigned *retries, retry_count; /* connections that are to be opened again */
static unsigned opened;                /* MODE_HOLD: how many were begun */
static uint64_t started, completed, reply_errors, backlog_full;
static uint64_t errors[STEPS][MOST_ERRNO];
static int poll_fd;
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* CPU time of this process and how long it waited for a core; without schedstat only the first. */
static void read_cpu(double *ran, double *waited) {
    unsigned long long ran_ns, waited_ns;
    FILE *file = fopen("/proc/self/schedstat", "r");
    bool known = file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2;
    if (file) fclose(file);
    if (known) {
        *ran = (double)ran_ns / 1e9;
        *waited = (double)waited_ns / 1e9;
        return;
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    *ran = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    *waited = 0;
}

static void try_again(struct connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    started--;
    retries[retry_count++] = (unsigned)(c - connections);
}

static void failed(struct connection *c, enum step step, int error) {
    errors[step][error < MOST_ERRNO ? error : 0]++;
    try_again(c);
    if (options->mode == MODE_HOLD) stopped = 1; /* a fleet is complete, or it is no use */
}

/* From 127.0.0.1, 127.0.0.2, ... in turn: one address has only some 28,000 ports, each of which stays
 * taken for a minute after its connection was closed. The port is chosen by connect(), which can
 * share one between different addresses of the server. */
static int bind_to_next_source(int fd) {
    static unsigned turn;
    const int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(0x7f000001 + turn++ % options->sources);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&source, sizeof source);
}

/* Returns false if the connection failed. A command goes in one piece into an empty socket buffer. */
static bool send_command(struct connection *c) {
    size_t length;
    const char *payload = next_payload(&length);
    ssize_t sent = send(c->fd, payload, length, MSG_NOSIGNAL);
    if (sent == (ssize_t)length) {
        c->sent = true;
        reply_begin(&c->reply);
        return true;
    }
    if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)) return true; /* not connected yet */
    failed(c, STEP_SEND, sent < 0 ? errno : EMSGSIZE);
    return false;
}

static void open_connection(struct connection *c) {
    started++;
    c->sent = false;
    c->began = now();
    c->fd = socket(options->target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || (!options->unix_socket && options->sources > 1 && bind_to_next_source(c->fd))) {
        failed(c, STEP_CONNECT, errno);
        return;
    }
    int result = connect(c->fd, (const struct sockaddr *)&options->target, options->target_length);
    if (result < 0 && errno == EAGAIN && options->unix_socket) {
        backlog_full++; /* a Unix socket says so, where TCP waits a second and tries again */
        try_again(c);
        return;
    }
    if (result < 0 && errno != EINPROGRESS) {
        failed(c, STEP_CONNECT, errno);
        return;
    }
    /* On loopback the handshake is done by now, although connect() does not say so. */
    if (!send_command(c)) return;
    struct epoll_event event = {.events = c->sent ? EPOLLIN : EPOLLOUT, .data.ptr = c};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event) < 0) failed(c, STEP_CONNECT, errno);
}

static void may_send(struct connection *c) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) {
        failed(c, STEP_CONNECT, error);
        return;
    }
    if (!send_command(c) || !c->sent) return;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static bool may_start(void) { return !stopped && (!options->total || started < options->total); }

static void answered(struct connection *c) {
    completed++;
    latency_record(now() - c->began);
    if (options->mode == MODE_HOLD) {
        if (opened < options->connections) open_connection(&connections[opened++]);
        return;
    }
    if (options->mode == MODE_LONG) {
        if (!may_start()) return;
        started++;
            c->sent = false;
        c->began = now();
        send_command(c);
        return;
    }
    close(c->fd);
    c->fd = -1;
    if (may_start()) open_connection(c);
}

static void may_receive(struct connection *c) {
    static char buffer[256 * 1024];
    bool error = false;
    ssize_t length = recv(c->fd, buffer, sizeof buffer, 0);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        failed(c, length < 0 ? STEP_RECEIVE : STEP_CLOSED, length < 0 ? errno : 0);
        return;
    }
    reply_read(&c->reply, buffer, (size_t)length, &error);
    if (error && reply_errors++ == 0) {
        printf("refused %.*s\n", (int)(length < 200 ? length - 2 : 200), buffer);
        fflush(stdout);
    }
    if (error && options->mode == MODE_HOLD) stopped = 1;
    if (c->reply.pending == 0) answered(c);
}

static void open_again(void) {
    unsigned count = retry_count;
    unsigned again[OPENING_AT_ONCE];
    if (count > OPENING_AT_ONCE) count = OPENING_AT_ONCE;
    for (unsigned i = 0; i < count; i++) again[i] = retries[--retry_count];
    for (unsigned i = 0; i < count && may_start(); i++) open_connection(&connections[again[i]]);
}

static void print_result(double seconds, double ran, double waited) {
    const char *comma = "";
    printf("{\"seconds\":%.6f,\"completed\":%llu,\"replyErrors\":%llu,\"backlogFull\":%llu,"
           "\"cpuSeconds\":%.6f,\"waitedSeconds\":%.6f,\"errors\":[",
           seconds, (unsigned long long)completed, (unsigned long long)reply_errors,
           (unsigned long long)backlog_full, ran, waited);
    for (int step = 0; step < STEPS; step++) {
        for (int error = 0; error < MOST_ERRNO; error++) {
            if (errors[step][error] == 0) continue;
            printf("%s{\"step\":\"%s\",\"errno\":%d,\"count\":%llu}", comma, step_names[step], error,
                   (unsigned long long)errors[step][error]);
            comma = ",";
        }
    }
    printf("],\"latency\":");
    latency_print();
    printf("}\n");
}

static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void serve_events(int timeout_ms) {
    static struct epoll_event events[EVENTS];
    int count = epoll_wait(poll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (c->fd < 0) continue;
        if (c->sent) may_receive(c);
        else may_send(c);
    }
    if (retry_count > 0) open_again();
}

int run_load(const struct options *given) {
    options = given;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* whoever started it may be killed */
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    raise_descriptor_limit();
    connections = calloc(options->connections, sizeof *connections);
    retries = calloc(options->connections, sizeof *retries);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!connections || !retries || poll_fd < 0) return 1;

    double ran_before, waited_before, ran, waited;
    read_cpu(&ran_before, &waited_before);
    uint64_t began = now(), told = began, time = began;
    uint64_t end = began + (uint64_t)(options->seconds * 1e6);
    bool hold = options->mode == MODE_HOLD, holding = false;
    opened = hold && options->connections > OPENING_AT_ONCE ? OPENING_AT_ONCE : options->connections;
    puts("started");
    fflush(stdout);
    for (unsigned i = 0; i < options->connections; i++) connections[i].fd = -1;
    for (unsigned i = 0; i < opened && may_start(); i++) open_connection(&connections[i]);
    while (!stopped && (options->seconds == 0 || time < end)) {
        if (options->total && completed >= options->total) break;
        serve_events(retry_count > 0 ? RETRY_MS : 100);
        time = now();
        if (hold && !holding && completed == options->connections) {
            holding = true;
            puts("holding");
            fflush(stdout);
        }
        if (time - told > 500000 && !hold) {
            told = time;
            printf("progress %llu\n", (unsigned long long)completed);
            fflush(stdout);
        }
    }
    read_cpu(&ran, &waited);
    print_result((double)(now() - began) / 1e6, ran - ran_before, waited - waited_before);
    return 0;
}
