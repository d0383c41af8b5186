#define _GNU_SOURCE
#include "CBenchmark.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int put(int fd, int64_t offset, size_t length) {
  static const unsigned char page[PAGE];
  if (length > PAGE) return -EINVAL;
  const ssize_t written = pwrite(fd, page, length, offset);
  if (written < 0) return -errno;
  return (size_t)written == length ? 0 : -ENOSPC;
}

int bench_disk_open(const char *path, size_t length) {
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -errno;
  int result = 0;
  for (size_t offset = 0; offset < length && result == 0; offset += PAGE) result = put(fd, (int64_t)offset, PAGE);
  if (result == 0 && fsync(fd) < 0) result = -errno;
  if (result == 0) return fd;
  close(fd);
  return result;
}

int bench_disk_write(int fd, int64_t offset, size_t length) {
  const int result = put(fd, offset, length);
  if (result < 0) return result;
  return fdatasync(fd) < 0 ? -errno : 0;
}

void bench_disk_close(int fd) { close(fd); }
