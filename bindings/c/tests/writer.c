/* Writes a table with one route: writer FILE ID. */
#include <fibula.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const uint32_t address = 0xc0000200, id = (uint32_t)strtoul(arguments[2], NULL, 10);
    const uint8_t length = 24;
    const fibula_routes ipv4 = {&address, &length, &id, 1};
    fibula_table *table;
    fibula_error error;
    if (fibula_table_build(&ipv4, NULL, NULL, &table, &error) != 0 || fibula_table_save(table, arguments[1], &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    fibula_table_unref(table);
    return 0;
}
