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

uintptr_t relink_thread_identity(void) {
  // The address of a variable of which each thread has its own: cheap, and the same on every system.
  static _Thread_local char here;
  return (uintptr_t)&here;
}
