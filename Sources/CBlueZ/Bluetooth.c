#if __linux__
#define _GNU_SOURCE
#include "CBlueZ.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>
#include <bluetooth/l2cap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(RELINK_ADAPTER_LIMIT == HCI_MAX_DEV, "adapters");
_Static_assert(RELINK_ADDRESS_LENGTH == sizeof(bdaddr_t), "addresses");

// Neither is in libbluetooth: the control channel of include/net/bluetooth/hci_sock.h, the fixed channel of ATT
// (Core Specification Vol 3 Part A 2.1), the link types of include/net/bluetooth/hci.h.
enum { CONTROL_CHANNEL = 3, NO_DEVICE = 0xffff, ATT_CHANNEL = 4, LE_TYPE = 0x80 };

int relink_hci_open(void) {
  const int descriptor = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
  return descriptor < 0 ? -errno : descriptor;
}

int relink_hci_adapters(int descriptor, struct relink_adapter *adapters) {
  const size_t size = sizeof(struct hci_dev_list_req) + HCI_MAX_DEV * sizeof(struct hci_dev_req);
  struct hci_dev_list_req *list = calloc(1, size);
  if (!list) return -ENOMEM;
  list->dev_num = HCI_MAX_DEV;
  int count = 0;
  if (ioctl(descriptor, HCIGETDEVLIST, list) < 0) {
    count = -errno;
  } else {
    for (int position = 0; position < list->dev_num && count < HCI_MAX_DEV; position++) {
      struct hci_dev_info info = {.dev_id = list->dev_req[position].dev_id};
      // One that was unplugged since is no longer there.
      if (ioctl(descriptor, HCIGETDEVINFO, &info) < 0) continue;
      adapters[count].index = info.dev_id;
      adapters[count].is_up = hci_test_bit(HCI_UP, &info.flags) != 0;
      memcpy(adapters[count].address, &info.bdaddr, sizeof info.bdaddr);
      count++;
    }
  }
  free(list);
  return count;
}

int relink_hci_connections(int descriptor, uint16_t adapter, struct relink_connection *connections) {
  const size_t size =
      sizeof(struct hci_conn_list_req) + RELINK_CONNECTION_LIMIT * sizeof(struct hci_conn_info);
  struct hci_conn_list_req *list = calloc(1, size);
  if (!list) return -ENOMEM;
  list->dev_id = adapter;
  list->conn_num = RELINK_CONNECTION_LIMIT;
  int count = 0;
  if (ioctl(descriptor, HCIGETCONNLIST, list) < 0) {
    count = -errno;
  } else {
    for (int position = 0; position < list->conn_num && count < RELINK_CONNECTION_LIMIT; position++) {
      const struct hci_conn_info *info = &list->conn_info[position];
      if (info->type != LE_TYPE) continue;
      connections[count].handle = info->handle;
      connections[count].state = info->state;
      memcpy(connections[count].address, &info->bdaddr, sizeof info->bdaddr);
      count++;
    }
  }
  free(list);
  return count;
}

int relink_management_open(void) {
  const int descriptor = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, BTPROTO_HCI);
  if (descriptor < 0) return -errno;
  const struct sockaddr_hci address = {
      .hci_family = AF_BLUETOOTH, .hci_dev = NO_DEVICE, .hci_channel = CONTROL_CHANNEL};
  if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) < 0) {
    const int error = errno;
    close(descriptor);
    return -error;
  }
  return descriptor;
}

static struct sockaddr_l2 att_address(const uint8_t bytes[6], uint8_t type) {
  struct sockaddr_l2 address = {
      .l2_family = AF_BLUETOOTH, .l2_cid = htobs(ATT_CHANNEL), .l2_bdaddr_type = type};
  memcpy(&address.l2_bdaddr, bytes, sizeof address.l2_bdaddr);
  return address;
}

int relink_l2cap_open(const uint8_t adapter[6], uint8_t type) {
  const int descriptor = socket(AF_BLUETOOTH, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, BTPROTO_L2CAP);
  if (descriptor < 0) return -errno;
  const struct sockaddr_l2 address = att_address(adapter, type);
  if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) < 0) {
    const int error = errno;
    close(descriptor);
    return -error;
  }
  return descriptor;
}

int relink_l2cap_connect(int descriptor, const uint8_t device[6], uint8_t type) {
  const struct sockaddr_l2 address = att_address(device, type);
  int result;
  do {
    result = connect(descriptor, (const struct sockaddr *)&address, sizeof address);
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : 0;
}

int relink_l2cap_mtu(int descriptor) {
  struct l2cap_options options;
  socklen_t size = sizeof options;
  if (getsockopt(descriptor, SOL_L2CAP, L2CAP_OPTIONS, &options, &size) < 0) return -errno;
  return options.imtu < options.omtu ? options.imtu : options.omtu;
}

int relink_l2cap_security(int descriptor, uint8_t *level, uint8_t *key_size) {
  struct bt_security security = {0};
  socklen_t size = sizeof security;
  if (getsockopt(descriptor, SOL_BLUETOOTH, BT_SECURITY, &security, &size) < 0) return -errno;
  *level = security.level;
  *key_size = security.key_size;
  return 0;
}

int relink_l2cap_raise(int descriptor, uint8_t level) {
  const struct bt_security security = {.level = level};
  return setsockopt(descriptor, SOL_BLUETOOTH, BT_SECURITY, &security, sizeof security) < 0 ? -errno : 0;
}
#endif
