#if __linux__
#define _GNU_SOURCE
#include "CBlueZ.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int checked(int result) { return result < 0 ? -errno : result; }

// On Linux the descriptor is gone even when close reports EINTR, so it is not retried.
int relink_close(int descriptor) { return checked(close(descriptor)); }

int64_t relink_send(int descriptor, const void *bytes, size_t count) {
  ssize_t sent;
  do {
    sent = send(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

int64_t relink_receive(int descriptor, void *bytes, size_t capacity) {
  ssize_t received;
  do {
    received = recv(descriptor, bytes, capacity, MSG_DONTWAIT | MSG_TRUNC);
  } while (received < 0 && errno == EINTR);
  return received < 0 ? -errno : received;
}

int relink_socket_error(int descriptor) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return -errno;
  return error;
}

int relink_socket_set_receive_buffer(int descriptor, int bytes) {
  // The first form needs CAP_NET_ADMIN and passes net.core.rmem_max; the second is cut down to it.
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0) return 0;
  return checked(setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes));
}

int relink_socket_set_send_timeout(int descriptor, int64_t milliseconds) {
  const struct timeval limit = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
  return checked(setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
}

int relink_socket_pair(int descriptors[2]) {
  return checked(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, descriptors));
}

int relink_unix_connect(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, length);
  const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  int result;
  do {
    result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
  } while (result < 0 && errno == EINTR);
  if (result < 0) {
    const int error = errno;
    close(descriptor);
    return -error;
  }
  return descriptor;
}
#endif
