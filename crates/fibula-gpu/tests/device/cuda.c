// A stand-in for the driver of NVIDIA, for tests on machines without a GPU: it runs the kernels on the processor.
//
// It is strict where a real driver may be lenient or slow. What is put into a stream is done when the stream is waited for and
// no sooner, so that a program which changes or reads its buffers too early gets wrong answers; and it ends the program at
// once where memory was not allocated, is used past its end or freed twice.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

static _Thread_local unsigned work_item;
#include "../../kernels/lookup.c"

typedef int Result;
enum { SUCCESS = 0, NOT_FOUND = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void broken(const char *what) {
    fprintf(stderr, "stand-in for CUDA: %s\n", what);
    abort();
}

// Memory of the device and pinned memory.
typedef struct { char *at; size_t bytes; int is_pinned; } Memory;
static Memory memories[1 << 16];
static size_t memory_count;

static void *allocate(size_t bytes, int is_pinned) {
    if (bytes == 0) broken("an allocation of nothing");
    pthread_mutex_lock(&lock);
    if (memory_count == 1 << 16) broken("too many allocations");
    Memory *made = &memories[memory_count++];
    made->at = malloc(bytes), made->bytes = bytes, made->is_pinned = is_pinned;
    memset(made->at, 0xa5, bytes);
    pthread_mutex_unlock(&lock);
    return made->at;
}

static void release(void *at, int is_pinned) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < memory_count; i++) {
        if (memories[i].at == at && memories[i].is_pinned == is_pinned) {
            free(at);
            memories[i] = memories[--memory_count];
            pthread_mutex_unlock(&lock);
            return;
        }
    }
    broken("freed what is not allocated");
}

// Ends the program unless the bytes are within memory of this kind.
static void within(const void *from, size_t bytes, int is_pinned) {
    const char *at = from;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < memory_count; i++) {
        Memory *memory = &memories[i];
        if (memory->is_pinned == is_pinned && memory->at <= at && at + bytes <= memory->at + memory->bytes) {
            pthread_mutex_unlock(&lock);
            return;
        }
    }
    broken(is_pinned ? "not within pinned memory" : "not within memory of the device");
}

typedef void (*Kernel)(const uint *, const uint *, uint, const uint *, uint *, uint);
typedef struct { const char *name; Kernel kernel; uint key_words; } Function;
static Function functions[] = {
    {"dir_24_8", dir_24_8, 1},       {"dir_18_lines", dir_18_lines, 1}, {"dir_17_bitmap", dir_17_bitmap, 1},
    {"range_btree", range_btree, 1}, {"dir_btree", dir_btree, 4},       {"bloomfwd", bloomfwd, 4},
    {"bloomfwd_narrow", bloomfwd_narrow, 1},
};

// Work in a stream.
typedef struct Work {
    struct Work *next;
    Function *function;
    unsigned threads;
    uint *arena, *bases, *keys, *results;
    uint keys_a_base, count;
    void *to;
    const void *from;
    size_t bytes;
} Work;
typedef struct { Work *first, **last; } Stream;

static void append(Stream *stream, Work work) {
    if (!stream) broken("work in no stream");
    Work *made = malloc(sizeof work);
    *made = work, made->next = 0;
    *stream->last = made, stream->last = &made->next;
}

static void finish(Stream *stream) {
    for (Work *work = stream->first, *next; work; work = next) {
        next = work->next;
        if (work->function) {
            within(work->keys, 4ul * work->count * work->function->key_words, 0);
            within(work->results, 4ul * work->count, 0);
            within(work->arena, 64, 0);
            within(work->bases, 4, 0);
            for (work_item = 0; work_item < work->threads; work_item++) {
                work->function->kernel(work->arena, work->bases, work->keys_a_base, work->keys, work->results, work->count);
            }
        } else {
            memcpy(work->to, work->from, work->bytes);
        }
        free(work);
    }
    stream->first = 0, stream->last = &stream->first;
}

// A copy from memory that is not pinned: the call returns when the bytes are staged, and they may arrive later. Here they arrive
// when the default stream is waited for, with the next copy, and before memory is freed.
static struct { void *to; char *staged; size_t bytes; } settling;

static void settle(void) {
    pthread_mutex_lock(&lock);
    if (settling.staged) memcpy(settling.to, settling.staged, settling.bytes);
    free(settling.staged);
    settling.staged = 0;
    pthread_mutex_unlock(&lock);
}

Result cuInit(unsigned flags) { return SUCCESS; }
Result cuDriverGetVersion(int *version) { return *version = 12040, SUCCESS; }
Result cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
Result cuDeviceGet(int *device, int number) { return *device = number, SUCCESS; }
Result cuDeviceGetName(char *name, int room, int device) { return snprintf(name, room, "stand-in"), SUCCESS; }
Result cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1ul << 34, SUCCESS; }
Result cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = 1, SUCCESS; }
Result cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)1, SUCCESS; }
Result cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
Result cuDevicePrimaryCtxRelease(int device) { return SUCCESS; }
static _Thread_local void *current;
Result cuCtxSetCurrent(void *context) { return current = context, SUCCESS; }
Result cuCtxGetCurrent(void **context) { return *context = current, SUCCESS; }
Result cuCtxSynchronize(void) { return SUCCESS; } // Nothing calls it.
Result cuGetErrorName(int error, const char **text) { return *text = "CUDA_ERROR", SUCCESS; }
Result cuGetErrorString(int error, const char **text) { return *text = "an error", SUCCESS; }

static void bound(void) { if (!current) broken("the thread has no context"); }

static const char *module;
Result cuModuleLoadData(void **made, const void *image) {
    bound();
    if (!strstr(image, ".target sm_70")) broken("this is no PTX");
    return module = strdup(image), *made = (void *)module, SUCCESS;
}
Result cuModuleUnload(void *unloaded) { return SUCCESS; }
Result cuModuleGetFunction(void **function, void *of, const char *name) {
    bound();
    char entry[64];
    snprintf(entry, sizeof entry, ".visible .entry %s(", name);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0 && strstr(of, entry)) return *function = &functions[i], SUCCESS;
    }
    return NOT_FOUND;
}

Result cuMemAlloc_v2(uint64_t *at, size_t bytes) { return bound(), *at = (uint64_t)allocate(bytes, 0), SUCCESS; }
Result cuMemFree_v2(uint64_t at) { return bound(), settle(), release((void *)at, 0), SUCCESS; }
Result cuMemHostAlloc(void **at, size_t bytes, unsigned flags) { return bound(), *at = allocate(bytes, 1), SUCCESS; }
Result cuMemFreeHost(void *at) { return bound(), release(at, 1), SUCCESS; }
Result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    bound(), within((void *)to, bytes, 0), settle();
    pthread_mutex_lock(&lock);
    settling.to = (void *)to, settling.bytes = bytes;
    settling.staged = memcpy(malloc(bytes), from, bytes);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

Result cuStreamCreate(void **stream, unsigned flags) {
    bound();
    Stream *made = calloc(1, sizeof *made);
    return made->last = &made->first, *stream = made, SUCCESS;
}
Result cuStreamSynchronize(void *stream) { return bound(), stream ? finish(stream) : settle(), SUCCESS; }
Result cuStreamDestroy_v2(void *stream) {
    if (((Stream *)stream)->first) broken("a stream with work was destroyed");
    return free(stream), SUCCESS;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    bound(), within((void *)to, bytes, 0), within(from, bytes, 1);
    return append(stream, (Work){.to = (void *)to, .from = from, .bytes = bytes}), SUCCESS;
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    bound(), within((void *)from, bytes, 0), within(to, bytes, 1);
    memset(to, 0x5a, bytes);
    return append(stream, (Work){.to = to, .from = (void *)from, .bytes = bytes}), SUCCESS;
}
Result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *stream, void **parameters, void **extra) {
    bound();
    if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || extra) broken("a launch of this shape");
    Work work = {
        .function = function,
        .threads = gx * bx,
        .arena = *(uint **)parameters[0],
        .bases = *(uint **)parameters[1],
        .keys_a_base = *(uint *)parameters[2],
        .keys = *(uint **)parameters[3],
        .results = *(uint **)parameters[4],
        .count = *(uint *)parameters[5],
    };
    if (work.threads < work.count) broken("fewer threads than keys");
    return append(stream, work), SUCCESS;
}
