internal import CBlueZ
public import Relink

extension RadioLoop {
  /// `CLOCK_MONOTONIC`.
  public var now: MonotonicInstant { MonotonicInstant(nanoseconds: relink_clock_monotonic()) }

  /// `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME` and `CLOCK_REALTIME`.
  public func timestamp() -> Timestamp {
    Timestamp(monotonic: now, bootTime: relink_clock_boot(), wall: relink_clock_wall())
  }
}
