#define _GNU_SOURCE
#include "CBenchmark.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void bench_remove(const char *path) { unlink(path); }

void bench_exit(int status) { exit(status); }

int64_t bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_cpu_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_resident_bytes(void) {
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return -1;
  int count = fscanf(file, "%ld %ld", &total, &resident);
  fclose(file);
  return count == 2 ? (int64_t)resident * sysconf(_SC_PAGESIZE) : -1;
}

int bench_pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return -pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

int bench_socket_pair(int *near, int *far) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) return -errno;
  fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
  *near = fds[0];
  *far = fds[1];
  return 0;
}

// The peer: Heart Rate 0x0001-0x0004 with a measurement at 0x0003 and its CCCD at 0x0004; Generic Attribute
// 0x0005-0x0007 with the Database Hash at 0x0007.

size_t bench_answer(const uint8_t *q, size_t n, uint8_t *a) {
  uint16_t first = n >= 3 ? (uint16_t)(q[1] | q[2] << 8) : 0;
  uint16_t type = n == 7 ? (uint16_t)(q[5] | q[6] << 8) : 0;
  switch (q[0]) {
  case 0x02: memcpy(a, "\x03\xf7\x00", 3); return 3;
  case 0x10:
    if (first > 1) break;
    memcpy(a, "\x11\x06\x01\x00\x04\x00\x0d\x18\x05\x00\x07\x00\x01\x18", 14);
    return 14;
  case 0x08:
    if (type == 0x2803 && first <= 2) {
      memcpy(a, "\x09\x07\x02\x00\x1a\x03\x00\x37\x2a\x06\x00\x02\x07\x00\x2a\x2b", 16);
      return 16;
    }
    if (type != 0x2b2a || first > 7) break;
    memcpy(a, "\x09\x12\x07\x00" "0123456789abcdef", 20);
    return 20;
  case 0x04:
    if (first > 4) break;
    memcpy(a, "\x05\x01\x04\x00\x02\x29", 6);
    return 6;
  case 0x0a: memcpy(a, "\x0b\x2a", 2); return 2;
  case 0x12: a[0] = 0x13; return 1;
  default: if (q[0] & 0x40) return 0;
  }
  a[0] = 0x01; a[1] = q[0]; a[2] = (uint8_t)first; a[3] = (uint8_t)(first >> 8); a[4] = 0x0a;
  return 5;
}

struct peer { int fd, cpu; };

static void *serve(void *context) {
  struct peer peer = *(struct peer *)context;
  free(context);
  bench_pin(peer.cpu);
  uint8_t question[600], reply[600];
  for (;;) {
    ssize_t n = recv(peer.fd, question, sizeof question, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size_t length = bench_answer(question, (size_t)n, reply);
    if (length > 0 && send(peer.fd, reply, length, MSG_NOSIGNAL) < 0) break;
  }
  close(peer.fd);
  return NULL;
}

int bench_start_peer(int fd, int cpu) {
  struct peer *peer = malloc(sizeof *peer);
  if (!peer) return -ENOMEM;
  *peer = (struct peer){fd, cpu};
  pthread_t thread;
  int error = pthread_create(&thread, NULL, serve, peer);
  if (error) {
    free(peer);
    return -error;
  }
  pthread_detach(thread);
  return 0;
}

int bench_epoll_round_trips(int fd, uint16_t handle, size_t count, int64_t *nanoseconds) {
  int loop = epoll_create1(EPOLL_CLOEXEC);
  if (loop < 0) return -errno;
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  int result = epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
  uint8_t request[3] = {0x0a, (uint8_t)handle, (uint8_t)(handle >> 8)}, reply[600];
  for (size_t i = 0; i < count && result == 0; i++) {
    int64_t start = bench_now();
    if (send(fd, request, sizeof request, MSG_NOSIGNAL) < 0) result = -errno;
    struct epoll_event ready[8];
    while (result == 0) {
      if (epoll_wait(loop, ready, 8, -1) < 0) {
        if (errno != EINTR) result = -errno;
        continue;
      }
      ssize_t n = recv(fd, reply, sizeof reply, 0);
      if (n > 0 && reply[0] == 0x0b) break;
      if (n == 0) result = -ECONNRESET;
      if (n < 0 && errno != EAGAIN && errno != EINTR) result = -errno;
    }
    nanoseconds[i] = bench_now() - start;
  }
  close(loop);
  return result;
}
