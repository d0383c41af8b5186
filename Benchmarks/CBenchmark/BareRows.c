#include "CBenchmark.h"

#include <sqlite3.h>
#include <stdio.h>

static int run(sqlite3_stmt *statement) {
  int result;
  while ((result = sqlite3_step(statement)) == SQLITE_ROW) {}
  sqlite3_reset(statement);
  return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int commit(sqlite3 *connection, sqlite3_stmt *insert, int64_t first, int64_t rows) {
  // The bytes of a row of a store.
  static const unsigned char bytes[32] = {1};
  int result = sqlite3_exec(connection, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  for (int64_t number = first; number < first + rows && result == SQLITE_OK; number++) {
    char id[32];
    const int length = snprintf(id, sizeof id, "operation %lld", (long long)number);
    sqlite3_bind_int64(insert, 1, number);
    sqlite3_bind_text(insert, 2, id, length, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 3, bytes, 32, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 4, bytes, 32, SQLITE_STATIC);
    result = run(insert);
  }
  return result == SQLITE_OK ? sqlite3_exec(connection, "COMMIT", NULL, NULL, NULL) : result;
}

int bench_bare_rows(const char *path, int64_t rows, size_t commits, int64_t *nanoseconds) {
  sqlite3 *connection = NULL;
  sqlite3_stmt *insert = NULL;
  int result = sqlite3_open_v2(
      path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
  if (result == SQLITE_OK) {
    result = sqlite3_exec(
        connection,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
        "CREATE TABLE operations(key INTEGER PRIMARY KEY, id TEXT, fingerprint BLOB, operation BLOB)",
        NULL, NULL, NULL);
  }
  if (result == SQLITE_OK) {
    result = sqlite3_prepare_v3(
        connection, "INSERT INTO operations VALUES (?1, ?2, ?3, ?4)", -1, SQLITE_PREPARE_PERSISTENT, &insert, NULL);
  }
  for (size_t index = 0; index < commits && result == SQLITE_OK; index++) {
    const int64_t start = bench_now();
    result = commit(connection, insert, 1, rows);
    nanoseconds[index] = bench_now() - start;
    if (result != SQLITE_OK) break;
    sqlite3_exec(connection, "DELETE FROM operations", NULL, NULL, NULL);
    sqlite3_wal_checkpoint_v2(connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    // The first commit of a log that begins anew waits for the disk.
    result = commit(connection, insert, 0, 1);
  }
  sqlite3_finalize(insert);
  sqlite3_close(connection);
  return result;
}
