#if __linux__
#define _GNU_SOURCE
#include "CBlueZ.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int relink_controller_open(uint16_t adapter) {
  const int descriptor = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, BTPROTO_HCI);
  if (descriptor < 0) return -errno;
  const struct sockaddr_hci address = {
      .hci_family = AF_BLUETOOTH, .hci_dev = adapter, .hci_channel = HCI_CHANNEL_RAW};
  struct hci_filter filter;
  hci_filter_clear(&filter);
  hci_filter_set_ptype(HCI_EVENT_PKT, &filter);
  hci_filter_set_event(EVT_DISCONN_COMPLETE, &filter);
  hci_filter_set_event(EVT_ENCRYPT_CHANGE, &filter);
  // The kernel takes these two out of the filter of a process without CAP_NET_RAW, and says nothing.
  hci_filter_set_event(EVT_HARDWARE_ERROR, &filter);
  hci_filter_set_event(EVT_ENCRYPTION_KEY_REFRESH_COMPLETE, &filter);
  // Filtered before it is bound, so that nothing else is ever queued.
  if (setsockopt(descriptor, SOL_HCI, HCI_FILTER, &filter, sizeof filter) < 0 ||
      bind(descriptor, (const struct sockaddr *)&address, sizeof address) < 0) {
    const int error = errno;
    close(descriptor);
    return -error;
  }
  return descriptor;
}
#endif
