/* Counts replies, errors and latencies, and prints them. */
#define BUCKETS 10000000 /* of the histogram of latencies: one per microsecond up to 10 s */
#define MAX_ERRNO 256

enum step { CONNECT, SEND, RECEIVE, CLOSED, REPLY, LENGTH, STEPS };
static const char *const steps[STEPS] = {"connect", "send",        "receive",
                                         "closed",  "error reply", "reply of another length"};
static uint64_t completed, errors[STEPS][MAX_ERRNO];
static uint32_t latencies[BUCKETS];
static double longest; /* seconds */

#define WINDOW 0.1 /* seconds */
#define SLOW 0.005
static double window_began, slow_until; /* the end of the last window whose p99 was not below SLOW */
static uint64_t window_completed, window_slow;

static void end_windows(double time) {
    for (; time >= window_began + WINDOW; window_began += WINDOW) {
        if (window_slow * 100 >= window_completed) slow_until = window_began + WINDOW; /* also without replies */
        window_completed = window_slow = 0;
    }
}

/* Records complete replies to a request, with times in seconds. */
static void record(double began, double time, unsigned replies) {
    double latency = time - began;
    end_windows(time);
    window_completed += replies;
    if (latency >= SLOW) window_slow += replies;
    uint64_t micros = (uint64_t)(latency * 1e6);
    latencies[micros < BUCKETS ? micros : BUCKETS - 1] += replies;
    if (latency > longest) longest = latency;
    completed += replies;
}

/* Seconds in which this process ran or was ready to run; 0 if the kernel does not report it. */
static double read_demand(void) {
    unsigned long long ran_ns = 0, waited_ns = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) != 2) ran_ns = waited_ns = 0;
    if (file) fclose(file);
    return (double)(ran_ns + waited_ns) / 1e9;
}

/* The latency in milliseconds. */
static double percentile(double share) {
    uint64_t wanted = (uint64_t)(share * (double)completed), seen = 0, micros = 0;
    while (completed > 0 && (seen += latencies[micros]) <= wanted) micros++;
    return (double)micros / 1000;
}

/* The share of the latencies below a number of microseconds, 0 to 1. */
static double share_below(unsigned micros) {
    uint64_t seen = 0;
    for (unsigned i = 0; i < micros; i++) seen += latencies[i];
    return completed ? (double)seen / (double)completed : 0;
}

/* Prints a line of JSON: `Load` in load.ts. */
static void print_result(double began, double time, double demand) {
    const char *separator = "";
    double seconds = time - began;
    end_windows(time);
    printf("{\"seconds\":%.6f,\"completed\":%llu,\"demand\":%.6f,\"slowUntil\":%.3f,", seconds,
           (unsigned long long)completed, demand / seconds, slow_until > 0 ? slow_until - began : 0);
    printf("\"latency\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f,\"below1\":%.6f,\"above2\":%.6f},",
           percentile(0.5), percentile(0.9), percentile(0.99), longest * 1000, share_below(1000),
           completed ? 1 - share_below(2000) : 0);
    printf("\"errors\":{");
    for (int step = 0; step < STEPS; step++)
        for (int error = 0; error < MAX_ERRNO; error++) {
            if (errors[step][error] == 0) continue;
            printf("%s\"%s%s%s\":%llu", separator, steps[step], error ? " " : "",
                   error ? strerrorname_np(error) : "", (unsigned long long)errors[step][error]);
            separator = ",";
        }
    printf("}}\n");
}
