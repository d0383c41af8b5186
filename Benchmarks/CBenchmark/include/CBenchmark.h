#ifndef RELINK_CBENCHMARK_H
#define RELINK_CBENCHMARK_H

#include <stddef.h>
#include <stdint.h>

/// Makes a connected pair of SEQPACKET sockets. Returns 0, or the negative error number.
int bench_socket_pair(int *near, int *far);

/// The answer of the small GATT server to one PDU, at most 23 bytes; 0 bytes for a command.
size_t bench_answer(const uint8_t *question, size_t length, uint8_t *reply);

/// Starts a thread that answers ATT requests on `fd` as a small GATT server, pinned to `cpu`, until end of file.
/// The descriptor belongs to it. Returns 0, or the negative error number.
int bench_start_peer(int fd, int cpu);

/// Pins the calling thread to one processor. Returns 0, or the negative error number.
int bench_pin(int cpu);

/// Reads attribute `handle` over `fd` `count` times with epoll, one after the other, and stores the nanoseconds of each
/// round trip. The descriptor is non-blocking and stays open. Returns 0, or the negative error number.
int bench_epoll_round_trips(int fd, uint16_t handle, size_t count, int64_t *nanoseconds);

/// Makes a file of `length` zero bytes at `path`, which are on disk. Returns its descriptor, or the negative error number.
int bench_disk_open(const char *path, size_t length);

/// Writes `length` bytes, at most 4096, at `offset` of the file and waits until they are on disk (fdatasync). Returns 0,
/// or the negative error number.
int bench_disk_write(int fd, int64_t offset, size_t length);

/// Closes the file.
void bench_disk_close(int fd);

struct bench_journal;

/// Opens the journal at `path`, which has the schema of a store, for writing as the store does, with raw SQLite; null
/// when that fails. `device` is the key of its claim.
struct bench_journal *bench_journal_open(const char *path, int64_t device);

/// Commits rows with the numbers from `first` up to `count` in one transaction: each admitted, marked and settled where
/// `settles`, admitted otherwise. Returns 0, or a result code of SQLite.
int bench_journal_commit(struct bench_journal *journal, int64_t first, int64_t count, int settles);

/// Removes what is settled and writes the log back.
void bench_journal_tidy(struct bench_journal *journal);

/// Closes a journal.
void bench_journal_close(struct bench_journal *journal);

/// Makes a database at `path` with one table without an index, commits `rows` rows `commits` times with raw SQLite, and
/// stores the nanoseconds of each commit: less than this no journal of rows can take. Returns 0, or a result code of
/// SQLite.
int bench_bare_rows(const char *path, int64_t rows, size_t commits, int64_t *nanoseconds);

/// Removes a file.
void bench_remove(const char *path);

/// Ends the process with an exit status.
void bench_exit(int status);

/// The monotonic clock in nanoseconds.
int64_t bench_now(void);

/// The processor time that this process has used, in nanoseconds.
int64_t bench_cpu_time(void);

/// The resident memory of this process in bytes.
int64_t bench_resident_bytes(void);

#endif
