/* Lookups whose instructions are counted: count KIND PASSES. examples/count.rs makes the same ones in Rust. Prints the sum of the ids. */
#include <fibula.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUTES = 20000, KEYS = 4096, BULK = 32 };

static uint32_t state = 1;

static uint32_t next(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8 | state << 24;
}

int main(int count, char **arguments) {
    static uint32_t addresses[ROUTES], ids[ROUTES], keys[KEYS], found[BULK];
    static uint8_t lengths[ROUTES];
    if (count != 3) return 2;
    for (int i = 0; i < ROUTES; i++) {
        addresses[i] = next();
        lengths[i] = (uint8_t)(8 + next() % 17);
        ids[i] = 1 + next() % 100;
    }
    for (int i = 0; i < KEYS; i++) keys[i] = next();
    const fibula_routes ipv4 = {addresses, lengths, ids, ROUTES};
    fibula_options options = FIBULA_OPTIONS;
    options.flags = FIBULA_MASK | FIBULA_LAST_WINS;
    fibula_table *table;
    fibula_error error;
    if (fibula_table_build(&ipv4, NULL, &options, &table, &error) != 0) {
        fprintf(stderr, "row %" PRIu64 ": %s\n", error.row, error.message);
        return 1;
    }
    uint64_t sum = 0;
    for (long pass = strtol(arguments[2], NULL, 10); pass > 0; pass--) {
        if (strcmp(arguments[1], "bulk") == 0) {
            for (int i = 0; i < KEYS; i += BULK) {
                if (fibula_lookup4_bulk(table, keys + i, 0, 0, found, BULK) != 0) return 1;
                sum += found[0];
            }
        } else {
            for (int i = 0; i < KEYS; i++) sum += fibula_lookup4(table, keys[i]);
        }
    }
    printf("%" PRIu64 "\n", sum);
    fibula_table_unref(table);
    return 0;
}
