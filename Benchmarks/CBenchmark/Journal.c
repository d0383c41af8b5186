#include "CBenchmark.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGIN, COMMIT, CLAIM, PLACE, COUNT, ADMIT, MARK, SETTLE, STATEMENTS };

static const char *const texts[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [CLAIM] = "SELECT key, epoch, last_place FROM claims WHERE key = ?1",
    [PLACE] = "UPDATE claims SET last_place = ?2 WHERE key = ?1",
    [COUNT] = "UPDATE state SET commits = commits + 1",
    [ADMIT] = "INSERT INTO operations(device, id, place, fingerprint, sensitive, admitted_at, settled_at, delivered, "
              "operation, mark, outcome) VALUES (?1, ?2, ?3, ?4, 0, ?3, NULL, 0, ?5, NULL, NULL) "
              "ON CONFLICT(device, id) DO NOTHING",
    [MARK] = "UPDATE operations SET mark = ?3 WHERE device = ?1 AND id = ?2",
    [SETTLE] = "UPDATE operations SET outcome = ?3, settled_at = ?4 WHERE device = ?1 AND id = ?2 AND outcome IS NULL "
               "AND delivered = 0",
};

struct bench_journal {
  sqlite3 *connection;
  sqlite3_stmt *statements[STATEMENTS];
  int64_t device;
};

struct bench_journal *bench_journal_open(const char *path, int64_t device) {
  struct bench_journal *journal = calloc(1, sizeof *journal);
  if (!journal) return NULL;
  journal->device = device;
  int result = sqlite3_open_v2(path, &journal->connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (result == SQLITE_OK) {
    result = sqlite3_exec(
        journal->connection,
        "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;"
        "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 4194304;"
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
        NULL, NULL, NULL);
  }
  for (int index = 0; index < STATEMENTS && result == SQLITE_OK; index++) {
    result = sqlite3_prepare_v3(
        journal->connection, texts[index], -1, SQLITE_PREPARE_PERSISTENT, &journal->statements[index], NULL);
  }
  if (result == SQLITE_OK) return journal;
  bench_journal_close(journal);
  return NULL;
}

static int run(struct bench_journal *journal, int index) {
  sqlite3_stmt *statement = journal->statements[index];
  int result;
  while ((result = sqlite3_step(statement)) == SQLITE_ROW) {}
  sqlite3_reset(statement);
  return result == SQLITE_DONE ? SQLITE_OK : result;
}

int bench_journal_commit(struct bench_journal *journal, int64_t first, int64_t count, int settles) {
  // As the rows of the store's side: 32 bytes of request and of digest, 8 of mark and of outcome.
  static const unsigned char bytes[32] = {1};
  int result = run(journal, BEGIN);
  sqlite3_bind_int64(journal->statements[CLAIM], 1, journal->device);
  if (result == SQLITE_OK) result = run(journal, CLAIM);
  for (int64_t number = first; number < first + count && result == SQLITE_OK; number++) {
    char id[32];
    const int length = snprintf(id, sizeof id, "operation %lld", (long long)number);
    sqlite3_stmt *admit = journal->statements[ADMIT];
    sqlite3_bind_int64(admit, 1, journal->device);
    sqlite3_bind_text(admit, 2, id, length, SQLITE_STATIC);
    sqlite3_bind_int64(admit, 3, number);
    sqlite3_bind_blob(admit, 4, bytes, 32, SQLITE_STATIC);
    sqlite3_bind_blob(admit, 5, bytes, 32, SQLITE_STATIC);
    result = run(journal, ADMIT);
    for (int index = MARK; index <= SETTLE && settles && result == SQLITE_OK; index++) {
      sqlite3_stmt *change = journal->statements[index];
      sqlite3_bind_int64(change, 1, journal->device);
      sqlite3_bind_text(change, 2, id, length, SQLITE_STATIC);
      sqlite3_bind_blob(change, 3, bytes, 8, SQLITE_STATIC);
      if (index == SETTLE) sqlite3_bind_int64(change, 4, number);
      result = run(journal, index);
    }
  }
  sqlite3_bind_int64(journal->statements[PLACE], 1, journal->device);
  sqlite3_bind_int64(journal->statements[PLACE], 2, first + count - 1);
  if (result == SQLITE_OK) result = run(journal, PLACE);
  if (result == SQLITE_OK) result = run(journal, COUNT);
  return result == SQLITE_OK ? run(journal, COMMIT) : result;
}

void bench_journal_tidy(struct bench_journal *journal) {
  sqlite3_exec(
      journal->connection,
      "BEGIN; DELETE FROM operations WHERE outcome IS NOT NULL; PRAGMA incremental_vacuum(64); COMMIT", NULL, NULL, NULL);
  sqlite3_wal_checkpoint_v2(journal->connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

void bench_journal_close(struct bench_journal *journal) {
  for (int index = 0; index < STATEMENTS; index++) sqlite3_finalize(journal->statements[index]);
  sqlite3_close(journal->connection);
  free(journal);
}
