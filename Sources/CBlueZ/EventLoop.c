#if __linux__
#define _GNU_SOURCE
#include "CBlueZ.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

_Static_assert(RELINK_READABLE == EPOLLIN && RELINK_WRITABLE == EPOLLOUT, "epoll");
_Static_assert(RELINK_ERROR == EPOLLERR && RELINK_HANGUP == EPOLLHUP, "epoll");
_Static_assert(RELINK_PEER_HANGUP == EPOLLRDHUP && (uint32_t)RELINK_EDGE == (uint32_t)EPOLLET, "epoll");

static int checked(int result) { return result < 0 ? -errno : result; }

int relink_epoll_create(void) { return checked(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll, int operation, int descriptor, uint32_t events, uint64_t tag) {
  struct epoll_event event = {.events = events, .data = {.u64 = tag}};
  return checked(epoll_ctl(epoll, operation, descriptor, &event));
}

int relink_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t tag) {
  return control(epoll, EPOLL_CTL_ADD, descriptor, events, tag);
}

int relink_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t tag) {
  return control(epoll, EPOLL_CTL_MOD, descriptor, events, tag);
}

int relink_epoll_remove(int epoll, int descriptor) { return control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0); }

int relink_epoll_wait(int epoll, struct relink_event *events, int capacity, int milliseconds) {
  // The kernel's structure is packed on some systems and not on others; Swift sees one layout.
  struct epoll_event ready[256];
  if (capacity > 256) capacity = 256;
  int count;
  do {
    count = epoll_wait(epoll, ready, capacity, milliseconds);
  } while (count < 0 && errno == EINTR);
  for (int index = 0; index < count; index++) {
    events[index].tag = ready[index].data.u64;
    events[index].events = ready[index].events;
  }
  return checked(count);
}

int relink_eventfd_create(void) { return checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

int relink_eventfd_signal(int descriptor) {
  const uint64_t one = 1;
  ssize_t written;
  do {
    written = write(descriptor, &one, sizeof one);
  } while (written < 0 && errno == EINTR);
  return written < 0 ? -errno : 0;
}

int relink_timerfd_create(int counts_suspend) {
  const clockid_t clock = counts_suspend ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
  return checked(timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK));
}

int relink_timerfd_arm(int descriptor, int64_t nanoseconds) {
  if (nanoseconds < 1) nanoseconds = 1;  // zero would disarm it
  const struct itimerspec at = {
      .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
  return checked(timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &at, NULL));
}

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t relink_clock_monotonic(void) { return read_clock(CLOCK_MONOTONIC); }
int64_t relink_clock_boot(void) { return read_clock(CLOCK_BOOTTIME); }
int64_t relink_clock_wall(void) { return read_clock(CLOCK_REALTIME); }

int relink_clock_is_synchronised(void) {
  struct timex state = {0};
  return adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);
}

struct start {
  void (*body)(void *);
  void *context;
};

static void *run(void *argument) {
  const struct start start = *(struct start *)argument;
  free(argument);
  start.body(start.context);
  return NULL;
}

int relink_thread_start(void (*body)(void *), void *context, uint64_t *thread) {
  struct start *start = malloc(sizeof *start);
  if (!start) return -ENOMEM;
  *start = (struct start){body, context};
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t created;
  const int error = pthread_create(&created, NULL, run, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error) {
    free(start);
    return -error;
  }
  pthread_setname_np(created, "relink");
  *thread = (uint64_t)created;
  return 0;
}

int relink_thread_join(uint64_t thread) { return -pthread_join((pthread_t)thread, NULL); }
int relink_thread_detach(uint64_t thread) { return -pthread_detach((pthread_t)thread); }

int relink_thread_pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return -pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static _Thread_local const void *mark;

const void *relink_thread_mark(void) { return mark; }
void relink_thread_set_mark(const void *value) { mark = value; }
#endif
