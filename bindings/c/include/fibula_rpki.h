/*
 * Route origin validation (RFC 6811), in a library that was built with it:
 *
 *   cargo build -p fibula-c --features rpki
 *
 * fibula.h says what holds for all calls. The library that packages install does not have these.
 */
#ifndef FIBULA_RPKI_H
#define FIBULA_RPKI_H

#include "fibula.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fibula_vrps fibula_vrps; /* validated ROA payloads, compiled */

/* Reads an export of routinator, rpki-client or RIPE: CSV or JSON, plain or compressed. A few entries that are no payloads are left out.
 * FIBULA_E_FOREIGN where there is no payload, FIBULA_E_DAMAGED where more than a few entries are none. */
int fibula_vrps_open(const char *path, fibula_vrps **vrps, fibula_error *error);
void fibula_vrps_free(fibula_vrps *vrps);
int64_t fibula_vrps_count(const fibula_vrps *vrps);

#define FIBULA_ROV_VALID 1u
#define FIBULA_ROV_INVALID_AS 2u
#define FIBULA_ROV_INVALID_LENGTH 3u
#define FIBULA_ROV_NOT_FOUND 4u

/* Writes the state of each route to states[i]: that of the prefix prefixes[i], a text of lengths[i] bytes, from the AS asns[i]. 0 where the prefix is NULL, and
 * where it is none, which is counted, or with FIBULA_REFUSE_INVALID is FIBULA_E_INVALID. Bits after a prefix's length are not looked
 * at. Any number of threads may validate at once. Returns the number of invalid rows. */
int64_t fibula_vrps_validate(const fibula_vrps *vrps, const char *const *prefixes, const uint32_t *lengths,
                             const uint32_t *asns, uint32_t flags, uint8_t *states, size_t count, fibula_error *error);

#ifdef __cplusplus
}
#endif

#endif
