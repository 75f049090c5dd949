/* Misuse of handles, which the checked library refuses. Prints nothing where each is refused and right use is not. */
#include <fibula.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(what, value)                                                       \
    do {                                                                          \
        long long is = (long long)(value);                                        \
        if (is != (what)) printf("%d: %s is %lld\n", __LINE__, #value, is);       \
    } while (0)

enum { MANY = 1 << 20 };

static fibula_table *made(uint32_t id) {
    const uint32_t address = 0x0a000000;
    const uint8_t length = 8;
    const fibula_routes routes = {&address, &length, &id, 1};
    fibula_table *table;
    EXPECT(0, fibula_table_build(&routes, NULL, NULL, &table, NULL));
    return table;
}

static void tables(void) {
    uint32_t key = 0x0a000001, found = 7;
    fibula_error error;
    fibula_table *table = made(1);
    EXPECT(1, fibula_table_ref(table) == table);
    fibula_table_unref(table);
    EXPECT(1, fibula_lookup4(table, key));
    fibula_table_unref(table);
    EXPECT(0, fibula_lookup4(table, key));
    EXPECT(FIBULA_E_MISUSE, fibula_lookup4_bulk(table, &key, 0, 0, &found, 1));
    EXPECT(FIBULA_E_MISUSE, fibula_lookup4_bulk(table, &key, 0, FIBULA_NETWORK_ORDER, &found, 1));
    EXPECT(FIBULA_E_MISUSE, fibula_table_save(table, "/nowhere", &error));
    EXPECT(FIBULA_E_MISUSE, error.code);
    EXPECT(1, strstr(error.message, "was freed") != NULL);
    EXPECT(7, found);
    EXPECT(1, fibula_table_ref(table) == NULL);
    fibula_table_unref(table);
    /* No other table takes the place of a freed one. */
    for (int i = 0; i < 100; i++) {
        fibula_table *other = made(2);
        EXPECT(1, other != table);
        EXPECT(2, fibula_lookup4(other, key));
        fibula_table_unref(other);
    }
    EXPECT(0, fibula_lookup4(table, key));
    /* Neither a pointer to something else, nor a handle of another kind. */
    EXPECT(FIBULA_E_MISUSE, fibula_table_count((const fibula_table *)&key, 4));
    fibula_live *live;
    EXPECT(0, fibula_live_new(NULL, &live, NULL));
    EXPECT(FIBULA_E_MISUSE, fibula_table_count((const fibula_table *)live, 4));
    fibula_live_free(live);
    fibula_live_free(live);
    EXPECT(FIBULA_E_MISUSE, fibula_live_count(live));
    EXPECT(FIBULA_E_MISUSE, fibula_live_set4(live, 0, 0, 1, NULL));
    fibula_vrfs *vrfs;
    EXPECT(0, fibula_vrfs_new(NULL, &vrfs, NULL));
    fibula_vrfs_free(vrfs);
    EXPECT(FIBULA_E_MISUSE, fibula_vrfs_create(vrfs, &found, NULL));
    EXPECT(FIBULA_E_ARGUMENT, fibula_table_count(NULL, 4));
}

static fibula_reader *reader;
static uint32_t keys[MANY], ids[MANY];
static atomic_int is_over;

static void *look_up(void *unused) {
    while (!atomic_load(&is_over)) {
        int code = fibula_reader_lookup4_bulk(reader, keys, 0, 0, ids, MANY);
        if (code != 0) EXPECT(FIBULA_E_MISUSE, code);
    }
    return unused;
}

static void readers(void) {
    fibula_live *live;
    EXPECT(0, fibula_live_new(NULL, &live, NULL));
    EXPECT(0, fibula_live_set4(live, 0x0a000000, 8, 3, NULL));
    EXPECT(0, fibula_reader_new(live, &reader, NULL));
    EXPECT(0, fibula_reader_pin(reader));
    EXPECT(3, fibula_reader_lookup4(reader, 0x0a000001));
    EXPECT(0, fibula_reader_unpin(reader));
    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, look_up, NULL));
    int code;
    do code = fibula_reader_pin(reader);
    while (code == 0);
    EXPECT(FIBULA_E_MISUSE, code);
    atomic_store(&is_over, 1);
    EXPECT(0, pthread_join(thread, NULL));
    /* It may go from one thread to another. */
    EXPECT(0, fibula_reader_unpin(reader));
    fibula_live_free(live);
    EXPECT(3, fibula_reader_lookup4(reader, 0x0a000001));
    fibula_reader_free(reader);
    EXPECT(FIBULA_E_MISUSE, fibula_reader_pin(reader));
    EXPECT(0, fibula_reader_lookup4(reader, 0x0a000001));
}

int main(void) {
    tables();
    readers();
    return 0;
}
