#include "generator.h"

#include <stdio.h>
#include <sys/resource.h>

static const char *step_names[STEPS] = {"connect", "send", "receive", "closed"};

struct cpu_time read_cpu(void) {
    unsigned long long ran_ns, waited_ns;
    FILE *file = fopen("/proc/self/schedstat", "r");
    bool known = file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2;
    if (file) fclose(file);
    if (known) return (struct cpu_time){(double)ran_ns / 1e9, (double)waited_ns / 1e9};
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double ran = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    return (struct cpu_time){ran, 0};
}

void print_result(const struct counts *counts, double seconds, struct cpu_time before) {
    struct cpu_time used = read_cpu();
    const char *comma = "";
    printf("{\"seconds\":%.6f,\"completed\":%llu,\"replyErrors\":%llu,\"backlogFull\":%llu,"
           "\"cpuSeconds\":%.6f,\"waitedSeconds\":%.6f,\"errors\":[",
           seconds, (unsigned long long)counts->completed, (unsigned long long)counts->reply_errors,
           (unsigned long long)counts->backlog_full, used.ran - before.ran, used.waited - before.waited);
    for (int step = 0; step < STEPS; step++) {
        for (int error = 0; error < MOST_ERRNO; error++) {
            if (counts->errors[step][error] == 0) continue;
            printf("%s{\"step\":\"%s\",\"errno\":%d,\"count\":%llu}", comma, step_names[step], error,
                   (unsigned long long)counts->errors[step][error]);
            comma = ",";
        }
    }
    printf("],\"latency\":");
    latency_print();
    printf("}\n");
}
