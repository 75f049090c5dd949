/* The form of the plan that live.c gives to its program. */
#define DESTINATIONS (1 << 16)

struct plan {
    __u32 device;
    __u32 source;
    __u32 next;
    __u8 station[6];
    __u8 source_station[6];
};
