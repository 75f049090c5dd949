/*
 * Looks addresses up in a database by libmaxminddb: mmdb FILE FIELD < ADDRESSES. Prints the length of the network and the value of a field of numbers or texts, or -.
 */
#include <maxminddb.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    MMDB_s database;
    if (argc != 3) return 2;
    int status = MMDB_open(argv[1], MMDB_MODE_MMAP, &database);
    if (status != MMDB_SUCCESS) {
        fprintf(stderr, "%s: %s\n", argv[1], MMDB_strerror(status));
        return 1;
    }
    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        int is_no_address, error;
        MMDB_lookup_result_s found = MMDB_lookup_string(&database, line, &is_no_address, &error);
        if (is_no_address || error != MMDB_SUCCESS) {
            fprintf(stderr, "%s: %s\n", line, MMDB_strerror(error));
            return 1;
        }
        MMDB_entry_data_s value;
        if (!found.found_entry) {
            printf("%u -\n", found.netmask);
        } else if ((error = MMDB_get_value(&found.entry, &value, argv[2], NULL)) != MMDB_SUCCESS || !value.has_data) {
            fprintf(stderr, "%s: %s\n", line, MMDB_strerror(error));
            return 1;
        } else if (value.type == MMDB_DATA_TYPE_UINT32) {
            printf("%u %u\n", found.netmask, value.uint32);
        } else if (value.type == MMDB_DATA_TYPE_UTF8_STRING) {
            printf("%u %.*s\n", found.netmask, (int)value.data_size, value.utf8_string);
        } else {
            fprintf(stderr, "%s: a value of type %u\n", line, value.type);
            return 1;
        }
    }
    MMDB_close(&database);
    return 0;
}
