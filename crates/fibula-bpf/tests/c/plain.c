/* Answers of the header for programs, compiled as plain C: `plain FILE`. The file has the state, the bytes of each array, and then
 * keys; answers go to standard output. IPV6 is defined for the other family. */
#include <fibula_bpf.h>
#include <stdio.h>
#include <stdlib.h>

#include "table.h"

static void take(FILE *from, void *to, size_t bytes) {
    if (fread(to, 1, bytes, from) != bytes) {
        fprintf(stderr, "the file ends early\n");
        exit(1);
    }
}

int main(int count, char **arguments) {
    FILE *from = count == 2 ? fopen(arguments[1], "rb") : NULL;
    __u32 state, key[4], answer;
    if (!from) {
        return 1;
    }
    take(from, &state, sizeof state);
    ((__u32 *)table_h)[FIBULA_STATE] = state;
    take(from, table_0, sizeof table_0);
    take(from, table_1, sizeof table_1);
#if defined(IPV6) || FIBULA_IPV4_ENGINE == FIBULA_DIR_18_LINES
    take(from, table_2, sizeof table_2);
#endif
#if !defined(IPV6) && FIBULA_IPV4_ENGINE == FIBULA_DIR_18_LINES
    take(from, table_3, sizeof table_3);
#endif
    while (fread(key, 4, WORDS, from) == WORDS) {
#ifdef IPV6
        answer = fibula_ipv6_lookup(&table, (__u64)key[0] << 32 | key[1], (__u64)key[2] << 32 | key[3]);
#else
        answer = fibula_ipv4_lookup(&table, key[0]);
#endif
        fwrite(&answer, 4, 1, stdout);
    }
    return 0;
}
