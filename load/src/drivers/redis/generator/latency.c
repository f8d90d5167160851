#include "generator.h"

#include <stdio.h>

#define FINE 100000 /* one bucket per microsecond */
#define COARSE 100000 /* then one per millisecond */

static uint64_t fine[FINE], coarse[COARSE], recorded, sum, most;

void latency_record(uint64_t microseconds) {
    recorded++;
    sum += microseconds;
    if (microseconds > most) most = microseconds;
    if (microseconds < FINE) fine[microseconds]++;
    else coarse[microseconds / 1000 < COARSE ? microseconds / 1000 : COARSE - 1]++;
}

static uint64_t at_share(double share) {
    uint64_t wanted = (uint64_t)(share * (double)recorded), seen = 0;
    for (uint64_t i = 0; i < FINE; i++)
        if ((seen += fine[i]) > wanted) return i;
    for (uint64_t i = 0; i < COARSE; i++)
        if ((seen += coarse[i]) > wanted) return i * 1000;
    return most;
}

static uint64_t below(uint64_t microseconds) {
    uint64_t seen = 0;
    for (uint64_t i = 0; i < microseconds; i++) seen += fine[i];
    return seen;
}

void latency_print(void) {
    printf("{\"count\":%llu,\"mean\":%.1f,\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"p999\":%llu,"
           "\"max\":%llu,\"below1ms\":%llu,\"below2ms\":%llu}",
           (unsigned long long)recorded, recorded ? (double)sum / (double)recorded : 0.0,
           (unsigned long long)at_share(0.5), (unsigned long long)at_share(0.9),
           (unsigned long long)at_share(0.99), (unsigned long long)at_share(0.999),
           (unsigned long long)most, (unsigned long long)below(1000),
           (unsigned long long)below(2000));
}
