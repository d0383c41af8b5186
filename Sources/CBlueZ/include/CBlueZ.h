#ifndef RELINK_CBLUEZ_H
#define RELINK_CBLUEZ_H

#include <stddef.h>
#include <stdint.h>

// What Swift cannot call by itself: macros, variadic functions, packed structures and libbluetooth.
//
// A function that can fail returns the negative error number, otherwise zero or what it names. None is interrupted by
// a signal (EINTR is retried), and none waits except relink_epoll_wait and relink_thread_join. Empty off Linux.

// MARK: epoll, eventfd, timerfd, clocks

/// Events of a descriptor; the values are those of <sys/epoll.h>.
enum {
  RELINK_READABLE = 0x001,
  RELINK_WRITABLE = 0x004,
  RELINK_ERROR = 0x008,
  RELINK_HANGUP = 0x010,
  RELINK_PEER_HANGUP = 0x2000,
  RELINK_EDGE = (int)0x80000000u,
};

struct relink_event {
  uint64_t tag;
  uint32_t events;
};

int relink_epoll_create(void);
int relink_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t tag);
int relink_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t tag);
int relink_epoll_remove(int epoll, int descriptor);
/// Waits for at most `milliseconds`, for ever if negative; returns how many of `events` it filled (at most 256).
int relink_epoll_wait(int epoll, struct relink_event *events, int capacity, int milliseconds);

int relink_eventfd_create(void);
int relink_eventfd_signal(int descriptor);

/// A timer on CLOCK_BOOTTIME where it counts suspended time, on CLOCK_MONOTONIC otherwise.
int relink_timerfd_create(int counts_suspend);
/// Fires at this instant of its clock, or at once if it has passed.
int relink_timerfd_arm(int descriptor, int64_t nanoseconds);

/// Nanoseconds of CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME.
int64_t relink_clock_monotonic(void);
int64_t relink_clock_boot(void);
int64_t relink_clock_wall(void);
/// Whether the kernel counts CLOCK_REALTIME as synchronised.
int relink_clock_is_synchronised(void);

// MARK: threads

int relink_thread_start(void (*body)(void *), void *context, uint64_t *thread);
int relink_thread_join(uint64_t thread);
int relink_thread_detach(uint64_t thread);
/// Binds the calling thread to one processor.
int relink_thread_pin(int processor);

/// What the calling thread is the thread of; null for threads that nobody marked.
const void *relink_thread_mark(void);
void relink_thread_set_mark(const void *mark);

// MARK: sockets

int relink_close(int descriptor);
/// One datagram, whole or not at all; never raises SIGPIPE.
int64_t relink_send(int descriptor, const void *bytes, size_t count);
/// One datagram; the result is its whole length, also where it did not fit.
int64_t relink_receive(int descriptor, void *bytes, size_t capacity);
/// Takes the pending error (SO_ERROR) as a positive number.
int relink_socket_error(int descriptor);
/// Asks for a receive buffer of this size, beyond the system's limit where that is permitted.
int relink_socket_set_receive_buffer(int descriptor, int bytes);
/// How long a connect may stay pending (SO_SNDTIMEO).
int relink_socket_set_send_timeout(int descriptor, int64_t milliseconds);
/// Two connected Unix SEQPACKET sockets.
int relink_socket_pair(int descriptors[2]);
/// A Unix SEQPACKET socket connected to the path.
int relink_unix_connect(const char *path);

// MARK: Bluetooth

enum {
  RELINK_ADDRESS_LENGTH = 6,
  RELINK_ADAPTER_LIMIT = 16,
  RELINK_CONNECTION_LIMIT = 64,
};

/// An adapter as HCIGETDEVINFO shows it. Addresses are in the order of the wire, least significant octet first.
struct relink_adapter {
  uint16_t index;
  uint8_t address[6];
  uint8_t is_up;
};

/// A link as HCIGETCONNLIST shows it; only LE links are given out.
struct relink_connection {
  uint16_t handle;
  uint8_t address[6];
  /// As <bluetooth/bluetooth.h> numbers it: 1 connected, 5 connect pending, 7 being configured, 8 disconnecting.
  uint16_t state;
};

/// A socket for the queries below, which need no privilege.
int relink_hci_open(void);
/// The adapters of the host; at most RELINK_ADAPTER_LIMIT.
int relink_hci_adapters(int descriptor, struct relink_adapter *adapters);
/// The LE links of an adapter; at most RELINK_CONNECTION_LIMIT.
int relink_hci_connections(int descriptor, uint16_t adapter, struct relink_connection *connections);

/// What the controller of an adapter tells, as raw HCI events, non-blocking: Disconnection Complete and Encryption Change,
/// which need no privilege, and with CAP_NET_RAW Encryption Key Refresh Complete and Hardware Error. Nothing is sent.
int relink_controller_open(uint16_t adapter);

/// The management channel, non-blocking and bound.
int relink_management_open(void);

/// An ATT socket bound to the adapter of this address, or to any if it is zero; `type` is 1 for public, 2 for random.
int relink_l2cap_open(const uint8_t adapter[6], uint8_t type);
/// Begins to connect the ATT channel of a device; 0 when that is done at once, otherwise -EINPROGRESS.
int relink_l2cap_connect(int descriptor, const uint8_t device[6], uint8_t type);
/// The smaller of the two MTUs of a connected ATT socket.
int relink_l2cap_mtu(int descriptor);
/// How far the link of a connected ATT socket is secured: BT_SECURITY_* as <bluetooth/bluetooth.h> numbers them, and
/// the size of its key in bytes.
int relink_l2cap_security(int descriptor, uint8_t *level, uint8_t *key_size);
/// Begins to secure the link of a connected ATT socket to this level, which takes no data until that is done.
int relink_l2cap_raise(int descriptor, uint8_t level);

#endif
