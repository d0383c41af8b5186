#ifndef RELINK_CSQLITE_H
#define RELINK_CSQLITE_H

#include <sqlite3.h>

// The system's SQLite, and the one variadic function of it that Swift cannot call.

/// Leaves the write-ahead log as it is when the connection is closed.
static inline int relink_sqlite_keep_log(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

#endif
