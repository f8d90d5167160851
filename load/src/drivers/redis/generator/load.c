#include "generator.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 512
#define RETRY_MS 1          /* after a failure to connect, so that a dead server is not hammered */
#define OPENING_AT_ONCE 128 /* of those that failed: below any backlog */
#define SOURCES 200         /* TCP: connections come from 127.0.0.1 to 127.0.0.200 in turn */

struct connection {
    int fd;
    bool sent;
    uint64_t began; /* microseconds */
    struct reply reply;
};

static const struct options *options;
static struct connection *connections;
static struct connection **retries; /* to be opened again */
static struct connection **idle;    /* with a rate: connections that wait for the next command */
static unsigned retry_count, idle_count;
static uint64_t interval, due; /* with a rate: between commands, and when the next is due */
static uint64_t started;
static struct counts counts;
static int poll_fd, timer_fd;
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

static void try_again(struct connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    started--;
    retries[retry_count++] = c;
}

static void failed(struct connection *c, enum step step, int error) {
    counts.errors[step][error < MAX_ERRNO ? error : 0]++;
    try_again(c);
    if (options->mode == MODE_HOLD) stopped = 1; /* a fleet is complete, or it is no use */
}

/* One address has only some 28,000 ports, each of which stays taken for a minute after its connection
 * was closed. */
static int bind_to_next_source(int fd) {
    static unsigned turn;
    const int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(0x7f000001 + turn++ % SOURCES);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&source, sizeof source);
}

/* Returns false if the connection failed. A command goes in one piece into an empty socket buffer. */
static bool send_command(struct connection *c) {
    size_t length;
    const char *payload = next_payload(&length);
    ssize_t sent = send(c->fd, payload, length, MSG_NOSIGNAL);
    /* A server that has closed the connection may have sent the reason before: read it. */
    if (sent == (ssize_t)length || (sent < 0 && errno == EPIPE)) {
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
    bool tcp = options->target.ss_family == AF_INET;
    if (c->fd < 0 || (tcp && bind_to_next_source(c->fd))) {
        failed(c, STEP_CONNECT, errno);
        return;
    }
    int result = connect(c->fd, (const struct sockaddr *)&options->target, options->target_length);
    if (result < 0 && errno == EAGAIN && !tcp) { /* the backlog of a Unix socket is full */
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

static void send_next(struct connection *c, uint64_t began) {
    started++;
    c->sent = false;
    c->began = began;
    if (send_command(c) && !c->sent) failed(c, STEP_SEND, EAGAIN);
}

/* The clock of a command starts when it is due, not when a connection is free for it: otherwise a
 * server that stands still would be asked less often, and look better than it is. */
static void send_due(void) {
    for (uint64_t time = now(); idle_count > 0 && due <= time && may_start(); due += interval)
        send_next(idle[--idle_count], due);
}

static void tick_at_rate(double rate) {
    interval = (uint64_t)(1e6 / rate);
    if (interval == 0) interval = 1;
    due = now() + interval;
    struct timespec period = {.tv_sec = (time_t)(interval / 1000000),
                              .tv_nsec = (long)(interval % 1000000) * 1000};
    struct itimerspec timer = {.it_interval = period, .it_value = period};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(timer_fd, 0, &timer, NULL);
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer_fd, &event);
}

static void answered(struct connection *c) {
    counts.completed++;
    latency_record(now() - c->began);
    if (options->mode == MODE_HOLD) {
        if (!stopped && counts.completed == options->connections) puts("holding");
    } else if (options->mode == MODE_SHORT) {
        close(c->fd);
        c->fd = -1;
        if (may_start()) open_connection(c);
    } else if (interval > 0) {
        idle[idle_count++] = c;
        send_due();
    } else if (may_start()) {
        send_next(c, now());
    }
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
    if (error && counts.reply_errors++ == 0) {
        printf("refused %.*s\n", (int)(length < 200 ? length - 2 : 200), buffer);
        if (options->mode == MODE_HOLD) stopped = 1;
    }
    if (c->reply.pending == 0) answered(c);
}

static void open_again(void) {
    unsigned count = retry_count < OPENING_AT_ONCE ? retry_count : OPENING_AT_ONCE;
    struct connection **again = retries + (retry_count -= count);
    /* Those that fail again overwrite the ones before them. */
    for (unsigned i = 0; i < count && may_start(); i++) open_connection(again[i]);
}

static void serve_events(int timeout_ms) {
    static struct epoll_event events[EVENTS];
    int count = epoll_wait(poll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (c == NULL) { /* the timer */
            uint64_t ticks;
            if (read(timer_fd, &ticks, sizeof ticks) < 0) continue;
            send_due();
            continue;
        }
        if (c->fd < 0) continue;
        if (c->sent) may_receive(c);
        else may_send(c);
    }
    if (retry_count > 0) open_again();
}

int run_load(const struct options *given) {
    options = given;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the parent may be killed */
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    connections = calloc(options->connections, sizeof *connections);
    retries = calloc(options->connections, sizeof(struct connection *));
    idle = calloc(options->connections, sizeof(struct connection *));
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!connections || !retries || !idle || poll_fd < 0) return 1;

    double demand = read_demand();
    uint64_t began = now(), time = began, reported_at = began, reported = 0;
    uint64_t end = began + (uint64_t)(options->seconds * 1e6);
    if (options->rate > 0) tick_at_rate(options->rate);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("started");
    for (unsigned i = 0; i < options->connections; i++) connections[i].fd = -1;
    for (unsigned i = 0; i < options->connections && may_start(); i++) open_connection(&connections[i]);
    while (!stopped && (options->seconds == 0 || time < end)) {
        if (options->total && counts.completed >= options->total) break;
        serve_events(retry_count > 0 ? RETRY_MS : 100);
        time = now();
        if (time - reported_at > 500000 && options->mode != MODE_HOLD) {
            uint64_t replies = counts.completed - reported;
            printf("progress %.0f\n", (double)replies * 1e6 / (double)(time - reported_at));
            reported_at = time;
            reported = counts.completed;
        }
    }
    print_result(&counts, (double)(now() - began) / 1e6, read_demand() - demand);
    return 0;
}
