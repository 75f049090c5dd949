/* Looks up destination addresses where they lie in packets, in network order: no copy, one call a burst. */
#include <fibula.h>
#include <stdio.h>
#include <string.h>

enum { BURST = 32, FRAME = 64, DESTINATION = 14 + 16 }; /* Ethernet, then the destination of an IPv4 header */

int main(void) {
    const uint32_t addresses[] = {0x0a000000, 0x0a100000}; /* 10.0.0.0/8, 10.16.0.0/12 */
    const uint8_t lengths[] = {8, 12};
    const uint32_t ports[] = {1, 2};
    const fibula_routes ipv4 = {addresses, lengths, ports, 2};
    fibula_table *table;
    if (fibula_table_build(&ipv4, NULL, NULL, &table, NULL) != 0) return 1;

    static unsigned char frames[BURST][FRAME];
    for (int i = 0; i < BURST; i++) {
        const unsigned char destination[4] = {10, (unsigned char)i, 0, 1};
        memcpy(&frames[i][DESTINATION], destination, sizeof destination);
    }
    uint32_t out[BURST];
    if (fibula_lookup4_bulk(table, &frames[0][DESTINATION], FRAME, FIBULA_NETWORK_ORDER, out, BURST) != 0) return 1;
    int to[3] = {0};
    for (int i = 0; i < BURST; i++) to[out[i]]++;
    printf("dropped %d, port 1 %d, port 2 %d\n", to[0], to[1], to[2]);
    fibula_table_unref(table);
    return 0;
}
