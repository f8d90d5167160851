#include "generator.h"

#include <stdio.h>

#define BUCKETS 10000000 /* one for each microsecond up to 10 s */

static uint32_t latencies[BUCKETS];
static uint64_t recorded, longest;

void latency_record(uint64_t microseconds) {
    recorded++;
    if (microseconds > longest) longest = microseconds;
    latencies[microseconds < BUCKETS ? microseconds : BUCKETS - 1]++;
}

/* In milliseconds. */
static double percentile(double share) {
    uint64_t wanted = (uint64_t)(share * (double)recorded), seen = 0;
    for (uint64_t i = 0; i < BUCKETS && recorded > 0; i++)
        if ((seen += latencies[i]) > wanted) return (double)i / 1000;
    return 0;
}

/* The share of the latencies below so many microseconds, 0 to 1. */
static double share_below(uint64_t microseconds) {
    uint64_t seen = 0;
    for (uint64_t i = 0; i < microseconds; i++) seen += latencies[i];
    return recorded ? (double)seen / (double)recorded : 0;
}

double read_demand(void) {
    unsigned long long ran_ns = 0, waited_ns = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) != 2) ran_ns = waited_ns = 0;
    if (file) fclose(file);
    return (double)(ran_ns + waited_ns) / 1e9;
}

void print_result(const struct counts *counts, double seconds, double demand) {
    static const char *steps[STEPS] = {"connect", "send", "receive", "closed"};
    printf("{\"seconds\":%.6f,\"completed\":%llu,\"demand\":%.6f,", seconds,
           (unsigned long long)counts->completed, demand / seconds);
    printf("\"latency\":{\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f,\"below1\":%.6f,\"above2\":%.6f},",
           percentile(0.5), percentile(0.99), (double)longest / 1000, share_below(1000),
           recorded ? 1 - share_below(2000) : 0);
    printf("\"errors\":{\"error reply\":%llu", (unsigned long long)counts->reply_errors);
    for (int step = 0; step < STEPS; step++)
        for (int error = 0; error < MAX_ERRNO; error++)
            if (counts->errors[step][error] > 0)
                printf(",\"%s %d\":%llu", steps[step], error,
                       (unsigned long long)counts->errors[step][error]);
    printf("}}\n");
}
