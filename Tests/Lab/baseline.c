// What a program without any library gets: the kernel's L2CAP socket for ATT, lost and dialled again.
//
//   baseline [LOSSES]    (8)
//
// Connects to $RELINK_LAB_PEER, exchanges the MTU, reads `counter`. Then, as often as asked, has the radio behind
// $RELINK_LAB_CONTROL end the link, sees the loss on the socket, waits until the kernel has forgotten the old link,
// dials, exchanges the MTU, reads. Prints one line of JSON; times are in milliseconds since the loss was seen.
// Exit status 0 if every read was answered on the link that was up at that time.

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ATT_CID = 4, PATIENCE_MS = 20000, MAX_PDU = 517 };

// Core Specification Vol 3 Part F, 3.4.
enum {
  MTU_REQUEST = 0x02,
  MTU_RESPONSE = 0x03,
  READ_BY_TYPE_REQUEST = 0x08,
  READ_BY_TYPE_RESPONSE = 0x09,
  READ_REQUEST = 0x0a,
  READ_RESPONSE = 0x0b,
};

static const uint8_t reasons[] = {0x08, 0x13, 0x15, 0x22, 0x3d, 0x3e, 0x05, 0x06};

// 00000002-7A3C-4D0B-9C41-52454C494E4B, least significant byte first.
static const uint8_t counter_uuid[16] = {
    0x4b, 0x4e, 0x49, 0x4c, 0x45, 0x52, 0x41, 0x9c, 0x0b, 0x4d, 0x3c, 0x7a, 0x02, 0x00, 0x00, 0x00,
};

struct reconnection {
  uint8_t reason;
  int error;
  double gone, up, answered;
};

static bdaddr_t peer;
static uint16_t handle;

static void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void die(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("baseline: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static uint32_t little32(const uint8_t *bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void await(int descriptor, short events, const char *what) {
  struct pollfd p = {.fd = descriptor, .events = events};
  int n;
  do n = poll(&p, 1, PATIENCE_MS);
  while (n < 0 && errno == EINTR);
  if (n <= 0) die("%s: nothing for %d s", what, PATIENCE_MS / 1000);
}

static int control_open(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die("the path of the control socket is too long");
  strcpy(address.sun_path, path);
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address)) {
    die("the radio at %s: %s", path, strerror(errno));
  }
  return descriptor;
}

static void control_send(int control, const char *verb, uint8_t reason) {
  if (dprintf(control, "%s %02x\n", verb, reason) < 0) die("the radio has gone");
}

static void control_confirm(int control) {
  char reply[4096];
  size_t length = 0;
  do {
    await(control, POLLIN, "the radio's reply");
    ssize_t n = read(control, reply + length, sizeof reply - 1 - length);
    if (n <= 0) die("the radio has gone");
    length += n;
  } while (reply[length - 1] != '\n' && length < sizeof reply - 1);
  reply[length] = 0;
  if (!strstr(reply, "\"ok\": true")) die("the radio said %s", reply);
}

// Whether the kernel still has a link to the peripheral. Any user may ask.
static int link_lives(int hci) {
  struct {
    struct hci_conn_list_req request;
    struct hci_conn_info info[16];
  } list = {.request = {.dev_id = 0, .conn_num = 16}};
  if (ioctl(hci, HCIGETCONNLIST, &list)) die("HCIGETCONNLIST: %s", strerror(errno));
  for (int i = 0; i < list.request.conn_num; i++) {
    if (!bacmp(&list.info[i].bdaddr, &peer)) return 1;
  }
  return 0;
}

static void await_link_gone(int hci) {
  double end = now_ms() + PATIENCE_MS;
  while (link_lives(hci)) {
    if (now_ms() > end) die("the old link stays");
    usleep(1000);
  }
}

static int dial(void) {
  int descriptor = socket(AF_BLUETOOTH, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, BTPROTO_L2CAP);
  if (descriptor < 0) die("no Bluetooth socket: %s", strerror(errno));
  struct sockaddr_l2 address = {
      .l2_family = AF_BLUETOOTH, .l2_cid = htobs(ATT_CID), .l2_bdaddr_type = BDADDR_LE_RANDOM};
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address)) die("bind: %s", strerror(errno));
  address.l2_bdaddr = peer;
  if (!connect(descriptor, (struct sockaddr *)&address, sizeof address)) die("connect found a living link");
  if (errno != EINPROGRESS) die("connect: %s", strerror(errno));
  await(descriptor, POLLOUT, "connect");
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error) die("connect ended with %s", strerror(error));
  return descriptor;
}

// Sends a request and takes its response of the opcode `wanted`; its length.
static size_t ask(int att, const uint8_t *request, size_t size, uint8_t wanted, uint8_t response[MAX_PDU]) {
  if (send(att, request, size, 0) != (ssize_t)size) die("send: %s", strerror(errno));
  await(att, POLLIN, "an answer");
  ssize_t n = recv(att, response, MAX_PDU, 0);
  if (n < 0) die("recv: %s", strerror(errno));
  if (n == 0 || response[0] != wanted) die("answer 0x%02x to request 0x%02x", n ? response[0] : 0, request[0]);
  return n;
}

static void exchange_mtu(int att) {
  const uint8_t request[] = {MTU_REQUEST, MAX_PDU & 0xff, MAX_PDU >> 8};
  uint8_t response[MAX_PDU];
  ask(att, request, sizeof request, MTU_RESPONSE, response);
}

// Reads `counter`, by its UUID the first time; the number of the link on which the radio was asked.
static uint32_t read_counter(int att) {
  uint8_t response[MAX_PDU];
  const uint8_t *value = response + 1;
  size_t length;
  if (handle) {
    const uint8_t request[] = {READ_REQUEST, handle & 0xff, handle >> 8};
    length = ask(att, request, sizeof request, READ_RESPONSE, response) - 1;
  } else {
    uint8_t request[5 + sizeof counter_uuid] = {READ_BY_TYPE_REQUEST, 0x01, 0x00, 0xff, 0xff};
    memcpy(request + 5, counter_uuid, sizeof counter_uuid);
    length = ask(att, request, sizeof request, READ_BY_TYPE_RESPONSE, response) - 4;
    handle = response[2] | response[3] << 8;
    value = response + 4;
  }
  if (length != 8) die("the counter has %zu bytes", length);
  return little32(value + 4);
}

// Waits until the socket says that its link is lost; the error.
static int await_loss(int att) {
  await(att, POLLIN, "the loss");
  uint8_t pdu[MAX_PDU];
  if (recv(att, pdu, sizeof pdu, 0) > 0) die("a PDU that nobody asked for");
  return errno;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const struct reconnection *all, int count) {
  double sorted[count];
  for (int i = 0; i < count; i++) sorted[i] = all[i].answered;
  qsort(sorted, count, sizeof *sorted, by_value);
  printf("{\"losses\": %d, \"median_ms\": %.1f, \"p90_ms\": %.1f, \"max_ms\": %.1f, \"reconnections\": [", count,
         (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, sorted[(count * 9 + 9) / 10 - 1], sorted[count - 1]);
  for (int i = 0; i < count; i++) {
    printf("%s{\"reason\": \"%02x\", \"errno\": %d, \"gone_ms\": %.1f, \"up_ms\": %.1f, \"answered_ms\": %.1f}",
           i ? ", " : "", all[i].reason, all[i].error, all[i].gone, all[i].up, all[i].answered);
  }
  puts("]}");
}

int main(int argc, char **argv) {
  int losses = argc > 1 ? atoi(argv[1]) : 8;
  const char *address = getenv("RELINK_LAB_PEER"), *path = getenv("RELINK_LAB_CONTROL");
  if (losses < 1 || losses > 100000 || !address || !path || str2ba(address, &peer)) {
    die("baseline [LOSSES], with RELINK_LAB_PEER and RELINK_LAB_CONTROL set");
  }
  int control = control_open(path);
  int hci = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
  if (hci < 0) die("no HCI socket: %s", strerror(errno));
  struct reconnection *all = calloc(losses, sizeof *all);
  if (!all) die("no memory");

  await_link_gone(hci);
  int att = dial();
  exchange_mtu(att);
  uint32_t link = read_counter(att);
  for (int i = 0; i < losses; i++) {
    uint8_t reason = reasons[i % sizeof reasons];
    all[i].reason = reason;
    control_send(control, reason == 0x13 || reason == 0x15 ? "terminate" : "lose", reason);
    all[i].error = await_loss(att);
    double seen = now_ms();
    close(att);
    await_link_gone(hci);
    all[i].gone = now_ms() - seen;
    att = dial();
    all[i].up = now_ms() - seen;
    exchange_mtu(att);
    uint32_t on = read_counter(att);
    all[i].answered = now_ms() - seen;
    if (on != link + 1) die("after loss %d: an answer from link %u, link %u was up", i + 1, on, link + 1);
    link = on;
    control_confirm(control);
  }
  report(all, losses);
  return 0;
}
