/* Builds a table of three routes and looks addresses up: cc lookup.c $(pkg-config --cflags --libs fibula) */
#include <fibula.h>
#include <inttypes.h>
#include <stdio.h>

int main(void) {
    const uint32_t addresses[] = {0xc0000200, 0xc0000280, 0x0a000000}; /* 192.0.2.0/24, 192.0.2.128/25, 10.0.0.0/8 */
    const uint8_t lengths[] = {24, 25, 8};
    const uint32_t ids[] = {1, 2, 3};
    const char *const names[] = {"no route", "amsterdam", "berlin", "lan"};
    const fibula_routes ipv4 = {addresses, lengths, ids, 3};
    fibula_table *table;
    fibula_error error;
    if (fibula_table_build(&ipv4, NULL, NULL, &table, &error) != 0) {
        fprintf(stderr, "row %" PRIu64 ": %s\n", error.row, error.message);
        return 1;
    }
    const char *const texts[] = {"192.0.2.1", "192.0.2.200", "10.1.2.3", "203.0.113.1", "2001:db8::1"};
    uint32_t found[5];
    if (fibula_lookup_text(table, texts, NULL, 0, found, 5, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (int i = 0; i < 5; i++) printf("%s %s\n", texts[i], names[found[i]]);
    fibula_table_unref(table);
    return 0;
}
