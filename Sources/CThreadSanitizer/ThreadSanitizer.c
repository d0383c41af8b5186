#include "CThreadSanitizer.h"

// Weak: present only in a process that was built with -sanitize=thread.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

void relink_tsan_acquire(const void *address) {
  if (__tsan_acquire) __tsan_acquire((void *)address);
}

void relink_tsan_release(const void *address) {
  if (__tsan_release) __tsan_release((void *)address);
}
