#include "generator.h"

#include <string.h>

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "isolate") == 0) return isolate(argv + 2);
    struct options options = parse_options(argc, argv);
    build_payload(&options);
    return run_load(&options);
}
