"""The air between two emulated Bluetooth controllers, with faults that can be asked for."""
import asyncio

from bumble import hci, ll
from bumble.controller import Controller
from bumble.hci import HCI_ErrorCode as Status
from bumble.hci import LeFeatureMask
from bumble.link import LocalLink


class LabController(Controller):
    """Bumble's controller with what the Linux kernel needs to take it for a real one.

    * It does not claim LL privacy or extended advertising. With either, the kernel waits for the enhanced
      connection complete event, which is never sent, and a connect stalls for seconds.
    * A cancelled LE Create Connection is over. The original forgets to cancel it, so that a later advertisement
      brings up a link that nobody asked for.
    * A disconnection that the host asked for is reported to it as 0x16, local host.
    * HCI Reset ends the links.
    """

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.le_features &= ~(
            LeFeatureMask.LL_PRIVACY
            | LeFeatureMask.LE_EXTENDED_ADVERTISING
            | LeFeatureMask.LE_PERIODIC_ADVERTISING
        )

    def on_hci_le_create_connection_cancel_command(self, _command):
        pending, self.pending_le_connection = self.pending_le_connection, None
        if pending is None:
            return hci.HCI_StatusReturnParameters(Status.COMMAND_DISALLOWED_ERROR)
        # Core Specification Vol 4 Part E, 7.8.13: first Command Complete, then LE Connection Complete.
        asyncio.get_running_loop().call_soon(
            self.send_hci_packet,
            hci.HCI_LE_Connection_Complete_Event(
                status=Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR,
                connection_handle=0,
                role=hci.Role.CENTRAL,
                peer_address_type=pending.peer_address.address_type,
                peer_address=pending.peer_address,
                connection_interval=0,
                peripheral_latency=0,
                supervision_timeout=0,
                central_clock_accuracy=0,
            ),
        )
        return hci.HCI_StatusReturnParameters(Status.SUCCESS)

    def on_hci_disconnect_command(self, command):
        connection = self.find_le_connection_by_handle(command.connection_handle)
        if connection is None:
            self._send_hci_command_status(Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, command.op_code)
            return
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        connection.send_ll_control_pdu(ll.TerminateInd(command.reason))
        self.on_le_disconnected(connection, Status.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)

    def on_hci_reset_command(self, command):
        self.pending_le_connection = None
        self.le_scan_enable = False
        for connection in list(self.le_connections.values()):
            connection.send_ll_control_pdu(ll.TerminateInd(Status.CONNECTION_TIMEOUT_ERROR))
            del self.le_connections[connection.peer_address]
        return super().on_hci_reset_command(command)


class Air(LocalLink):
    """Carries packets between the controllers; can fall silent or lose every link at once."""

    def __init__(self):
        super().__init__()
        self.silent = False
        self.dropped = 0

    def send_acl_data(self, sender_controller, destination_address, transport, data):
        connection = sender_controller.le_connections.get(destination_address)
        if self.silent or getattr(connection, 'dead', False):
            self.dropped += 1
            return
        receiver = self.find_le_controller(destination_address)
        if connection and receiver:
            # By the address that the link uses; the original takes the random one of either side for it.
            asyncio.get_running_loop().call_soon(
                receiver.on_link_acl_data, connection.self_address, transport, data)

    def send_advertising_pdu(self, sender_controller, packet):
        if not isinstance(packet, ll.ConnectInd):
            super().send_advertising_pdu(sender_controller, packet)
            return
        # At once, not posted: otherwise a peripheral that stops advertising in between would leave the host
        # with a link that has one end.
        for controller in self.controllers:
            if controller is not sender_controller:
                controller.on_ll_advertising_pdu(packet)

    def silence_links(self):
        """Every link of now is dead from here on, without either side being told. New links are sound."""
        for controller in self.controllers:
            for connection in controller.le_connections.values():
                connection.dead = True

    def drop(self, controller):
        """A controller has no links any more and tells nobody; the other ends of them time out."""
        controller.le_connections.clear()
        for other in self.controllers:
            if other is not controller:
                for connection in list(other.le_connections.values()):
                    other.on_le_disconnected(connection, Status.CONNECTION_TIMEOUT_ERROR)

    def lose(self, reason):
        """Both controllers report the loss of every link with an HCI reason; how many links that were."""
        lost = 0
        for controller in self.controllers:
            for connection in list(controller.le_connections.values()):
                controller.on_le_disconnected(connection, reason)
                lost += connection.role == hci.Role.PERIPHERAL
        return lost
