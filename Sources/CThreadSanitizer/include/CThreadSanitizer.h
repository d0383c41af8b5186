#ifndef RELINK_THREAD_SANITIZER_H
#define RELINK_THREAD_SANITIZER_H

/// Tells the thread sanitizer, where one is linked in, that what other threads released through `address` is seen here.
void relink_tsan_acquire(const void *address);

/// Tells the thread sanitizer, where one is linked in, that what this thread wrote may be acquired through `address`.
void relink_tsan_release(const void *address);

#endif
