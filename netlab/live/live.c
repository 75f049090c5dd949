/* Sends frames from within the kernel, and drops them in a driver, for netlab/measure:
 *   live OBJECT send DEVICE SECONDS SIZE TO-MAC SOURCE DESTINATIONS
 *       sends as many frames of SIZE bytes as it can out of DEVICE, to the addresses in the file DESTINATIONS in turn, and prints a line
 *       of JSON. The device at the other end of a veth takes them if it has an XDP program or GRO
 *   live OBJECT sink DEVICE
 *       drops what comes in by DEVICE, in its driver, until it is ended
 *
 * BPF_PROG_TEST_RUN has the kernel make the frames (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live.h"

/* Frames that the kernel hands to a device at once, and frames of a call: its pool of pages takes 25 ms to make and to free. */
#define BATCH 64
#define CALL 500000

static int die(const char *what) {
    perror(what);
    return 1;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int station(const char *text, __u8 *to) {
    return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", to, to + 1, to + 2, to + 3, to + 4, to + 5) == 6;
}

static int send_frames(struct bpf_object *object, char **arguments) {
    char path[128], text[32] = "", line[64];
    __u32 zero = 0, count = 0;
    struct plan plan = {.device = if_nametoindex(arguments[0])};
    double seconds = atof(arguments[1]);
    unsigned size = atoi(arguments[2]);
    snprintf(path, sizeof path, "/sys/class/net/%s/address", arguments[0]);
    FILE *file = fopen(path, "r");
    if (!plan.device || !file || !fgets(text, sizeof text, file) || fclose(file) != 0) {
        return die(arguments[0]);
    }
    if (size < 60 || size > 1514 || !station(text, plan.source_station) || !station(arguments[3], plan.station) ||
        inet_pton(AF_INET, arguments[4], &plan.source) != 1) {
        fprintf(stderr, "live: SIZE is from 60 to 1514, TO-MAC six bytes, SOURCE an IPv4 address\n");
        return 2;
    }
    int plans = bpf_object__find_map_fd_by_name(object, "plan");
    int destinations = bpf_object__find_map_fd_by_name(object, "destinations");
    __u32 *all = calloc(DESTINATIONS, sizeof *all);
    if (!all || !(file = fopen(arguments[5], "r"))) {
        return die(arguments[5]);
    }
    while (count < DESTINATIONS && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (inet_pton(AF_INET, line, &all[count++]) != 1) {
            fprintf(stderr, "live: %s: line %u is no IPv4 address: '%s'\n", arguments[5], count, line);
            return 2;
        }
    }
    fclose(file);
    for (__u32 at = 0; count && at < DESTINATIONS; at++) {
        if (bpf_map_update_elem(destinations, &at, &all[at % count], BPF_ANY) != 0) {
            return die("an address");
        }
    }
    if (!count || bpf_map_update_elem(plans, &zero, &plan, BPF_ANY) != 0) {
        return die("a plan");
    }
    int program = bpf_program__fd(bpf_object__find_program_by_name(object, "live"));
    char frame[1514] = {0};
    struct xdp_md context = {.data_end = size, .ingress_ifindex = plan.device};
    double end = now() + seconds, spent = 0;
    __u64 sent = 0;
    do {
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size, .ctx_in = &context, .ctx_size_in = sizeof context,
                    .repeat = CALL, .batch_size = BATCH, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
        if (bpf_prog_test_run_opts(program, &options) != 0) {
            return die("live frames (Linux 5.18)");
        }
        sent += CALL;
        /* The time of a frame, on average, without that of the pool. */
        spent += options.duration * 1e-9 * CALL;
    } while (now() < end);
    printf("{\"sent\": %llu, \"rate\": %.0f}\n", (unsigned long long)sent, sent / spent);
    return 0;
}

int main(int count, char **arguments) {
    if (!(count == 9 && strcmp(arguments[2], "send") == 0) && !(count == 4 && strcmp(arguments[2], "sink") == 0)) {
        fprintf(stderr, "live OBJECT send DEVICE SECONDS SIZE TO-MAC SOURCE DESTINATIONS | live OBJECT sink DEVICE\n");
        return 2;
    }
    struct bpf_object *object = bpf_object__open_file(arguments[1], NULL);
    if (!object || bpf_object__load(object) != 0) {
        return die(arguments[1]);
    }
    if (count == 9) {
        return send_frames(object, arguments + 3);
    }
    struct bpf_link *link = bpf_program__attach_xdp(bpf_object__find_program_by_name(object, "sink"), if_nametoindex(arguments[3]));
    if (!link) {
        return die(arguments[3]);
    }
    printf("sinks\n");
    fflush(stdout);
    pause();
    return 0;
}
