/* A table that changes while another thread looks addresses up, in bursts, as a packet loop does. */
#include <fibula.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { BURST = 32 };

static atomic_int last_round;

static void *look_up(void *argument) {
    fibula_reader *reader = argument;
    uint32_t keys[BURST], ids[BURST];
    for (uint32_t i = 0; i < BURST; i++) keys[i] = 0x0a000000 + (i << 16); /* 10.i.0.0 */
    long wrong = 0;
    fibula_reader_pin(reader);
    for (int last = 0; !last;) {
        last = atomic_load(&last_round);
        fibula_reader_quiescent(reader); /* once a burst: later lookups know all changes up to now */
        if (fibula_reader_lookup4_bulk(reader, keys, 0, 0, ids, BURST) != 0) wrong++;
        for (int i = 0; i < BURST; i++) wrong += ids[i] < 1 || ids[i] > 1000;
    }
    wrong += ids[0] != 1000; /* after the last round */
    fibula_reader_unpin(reader);
    return (void *)wrong;
}

int main(void) {
    fibula_live *live;
    fibula_reader *reader;
    fibula_error error;
    if (fibula_live_new(NULL, &live, &error) != 0 || fibula_live_set4(live, 0x0a000000, 8, 1, &error) != 0 ||
        fibula_reader_new(live, &reader, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, look_up, reader) != 0) return 1;
    for (uint32_t round = 2; round <= 1000; round++) {
        if (fibula_live_set4(live, 0x0a000000, 8, round, &error) != 0) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    }
    atomic_store(&last_round, 1);
    void *wrong;
    pthread_join(thread, &wrong);
    printf("%ld wrong answers, then %u\n", (long)wrong, (unsigned)fibula_live_lookup4(live, 0x0a010203));
    fibula_reader_free(reader);
    fibula_live_free(live);
    return wrong != NULL;
}
