/* Counts replies, errors and latencies, and prints them. */
#define BUCKETS 10000000 /* of the histogram of latencies: one per microsecond up to 10 s */
#define MAX_ERRNO 256

enum step { CONNECT, SEND, RECEIVE, CLOSED, REPLY, LENGTH, STEPS };
static const char *const steps[STEPS] = {"connect", "send",        "receive",
                                         "closed",  "error reply", "reply of another length"};
static uint64_t completed, errors[STEPS][MAX_ERRNO];
static uint32_t latencies[BUCKETS];
static double longest; /* seconds */

/* Records complete replies to a request. `latency` is in seconds. */
static void record(double latency, unsigned replies) {
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
static void print_result(double seconds, double demand) {
    const char *separator = "";
    printf("{\"seconds\":%.6f,\"completed\":%llu,\"demand\":%.6f,", seconds,
           (unsigned long long)completed, demand / seconds);
    printf("\"latency\":{\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f,\"below1\":%.6f,\"above2\":%.6f},",
           percentile(0.5), percentile(0.99), longest * 1000, share_below(1000),
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
