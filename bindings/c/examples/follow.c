/* Maps a table file and follows it: `follow FILE` prints the id of 192.0.2.1 now, and again when a line comes on standard input. */
#include <fibula.h>
#include <stdio.h>

int main(int count, char **arguments) {
    if (count != 2) return 2;
    fibula_options options = FIBULA_OPTIONS;
    options.flags = FIBULA_MAP;
    fibula_follower *follower;
    fibula_error error;
    if (fibula_follower_open(arguments[1], &options, &follower, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (int is_new = 0; ; ) {
        fibula_table *table = fibula_follower_table(follower);
        printf("%u %s%s\n", (unsigned)fibula_lookup4(table, 0xc0000201),
               fibula_table_is_mapped(table) ? "mapped" : "copied", is_new ? ", new" : "");
        fflush(stdout);
        fibula_table_unref(table);
        if (getchar() == EOF) break;
        /* A file that is damaged leaves the table that was there. */
        if (fibula_follower_poll(follower, &is_new, &error) != 0) fprintf(stderr, "%s\n", error.message);
    }
    fibula_follower_free(follower);
    return 0;
}
