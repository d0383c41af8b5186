#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

func fatalExit(_ status: Int32) -> Never {
  exit(status)
}
