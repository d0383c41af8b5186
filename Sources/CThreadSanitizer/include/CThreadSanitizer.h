#ifndef RELINK_THREAD_SANITIZER_H
#define RELINK_THREAD_SANITIZER_H

#include <stdint.h>

/// Tells the thread sanitizer, where one is linked in, that what other threads released through `address` is seen here.
void relink_tsan_acquire(const void *address);

/// Tells the thread sanitizer, where one is linked in, that what this thread wrote may be acquired through `address`.
void relink_tsan_release(const void *address);

/// A number that no other living thread of the process has.
uintptr_t relink_thread_identity(void);

#endif
