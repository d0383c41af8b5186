#include "CFaultVFS.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/// A write (or, without bytes, a truncation to `offset`) that was not synchronised.
struct change {
  struct change *next;
  int64_t offset;
  size_t count;
  int is_truncation;
  unsigned char bytes[];
};

/// What is known of a file by its path, also while it is closed.
struct entry {
  struct entry *next;
  char *path;
  ino_t inode;
  int openings;
  /// What is certainly on the disk.
  unsigned char *image;
  size_t size;
  struct change *first, **last;
};

struct relink_fault {
  sqlite3_vfs vfs;
  sqlite3_vfs *real;
  struct entry *entries;
  atomic_int kind, fired;
  atomic_uint_fast64_t calls, syncs, from, until;
  uint64_t seed;
};

struct file {
  sqlite3_file base;
  struct relink_fault *fault;
  struct entry *entry;
  sqlite3_file *real;
};

static uint64_t draw(struct relink_fault *fault) {
  uint64_t z = (fault->seed += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Counts a call where its kind of fault can hit it; the kind of the fault that does, or 0.
static int hit_if(struct relink_fault *fault, int counts) {
  const int kind = atomic_load(&fault->kind);
  if (!counts) return kind == RELINK_FAULT_POWER && atomic_load(&fault->fired) ? kind : 0;
  const uint64_t number = atomic_fetch_add(&fault->calls, 1) + 1;
  if (kind == 0 || number < atomic_load(&fault->from)) return 0;
  if (kind != RELINK_FAULT_POWER && number >= atomic_load(&fault->until)) return 0;
  atomic_store(&fault->fired, 1);
  return kind;
}

/// A call that only looks: a full disk does not concern it, and a loss of power might as well come with the next change.
static int hit(struct relink_fault *fault) {
  return hit_if(fault, atomic_load(&fault->kind) == RELINK_FAULT_IO);
}

/// A call that changes a file, or makes a change last.
static int hit_change(struct relink_fault *fault, int is_write) {
  return hit_if(fault, is_write || atomic_load(&fault->kind) != RELINK_FAULT_FULL);
}

// MARK: What is on the disk

static void forget(struct entry *entry) {
  while (entry->first) {
    struct change *change = entry->first;
    entry->first = change->next;
    free(change);
  }
  entry->last = &entry->first;
}

static void resize(struct entry *entry, size_t size) {
  unsigned char *image = realloc(entry->image, size ? size : 1);
  if (!image) abort();
  if (size > entry->size) memset(image + entry->size, 0, size - entry->size);
  entry->image = image;
  entry->size = size;
}

static void apply(struct entry *entry, const struct change *change, size_t count) {
  if (change->is_truncation) {
    resize(entry, (size_t)change->offset);
  } else if (count > 0) {
    const size_t end = (size_t)change->offset + count;
    if (end > entry->size) resize(entry, end);
    memcpy(entry->image + change->offset, change->bytes, count);
  }
}

static void load(struct entry *entry) {
  forget(entry);
  resize(entry, 0);
  const int descriptor = open(entry->path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status;
  if (fstat(descriptor, &status) == 0) {
    entry->inode = status.st_ino;
    resize(entry, (size_t)status.st_size);
    if (read(descriptor, entry->image, entry->size) != (ssize_t)entry->size) abort();
  }
  close(descriptor);
}

static struct entry *find(struct relink_fault *fault, const char *path) {
  for (struct entry *entry = fault->entries; entry; entry = entry->next) {
    if (strcmp(entry->path, path) == 0) return entry;
  }
  struct entry *entry = calloc(1, sizeof *entry);
  if (!entry || !(entry->path = strdup(path))) abort();
  entry->last = &entry->first;
  entry->next = fault->entries;
  fault->entries = entry;
  return entry;
}

static void note(struct file *file, const void *bytes, size_t count, int64_t offset, int is_truncation) {
  if (!file->entry) return;
  struct change *change = malloc(sizeof *change + count);
  if (!change) abort();
  *change = (struct change){.offset = offset, .count = count, .is_truncation = is_truncation};
  if (count) memcpy(change->bytes, bytes, count);
  *file->entry->last = change;
  file->entry->last = &change->next;
}

// MARK: Files

#define REAL(f) (((struct file *)(f))->real)
#define FAULT(f) (((struct file *)(f))->fault)

static int file_close(sqlite3_file *base) {
  struct file *file = (struct file *)base;
  if (file->entry) file->entry->openings--;
  return file->real->pMethods ? file->real->pMethods->xClose(file->real) : SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
  if (hit(FAULT(base))) return SQLITE_IOERR_READ;
  return REAL(base)->pMethods->xRead(REAL(base), bytes, count, offset);
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
  struct file *file = (struct file *)base;
  const int kind = hit_change(file->fault, 1);
  int written = count;
  if (kind) {
    const uint64_t choice = draw(file->fault);
    written = choice % 3 == 0 ? 0 : (int)((choice >> 8) % (uint64_t)count);
    if (choice % 3 == 2 && kind != RELINK_FAULT_FULL) written = count;
  }
  int result = SQLITE_OK;
  if (written > 0) {
    result = file->real->pMethods->xWrite(file->real, bytes, written, offset);
    if (result == SQLITE_OK) note(file, bytes, (size_t)written, offset, 0);
  }
  if (!kind) return result;
  return kind == RELINK_FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
  struct file *file = (struct file *)base;
  if (hit_change(file->fault, 0)) return SQLITE_IOERR_TRUNCATE;
  const int result = file->real->pMethods->xTruncate(file->real, size);
  if (result == SQLITE_OK) note(file, NULL, 0, size, 1);
  return result;
}

static int file_sync(sqlite3_file *base, int flags) {
  struct file *file = (struct file *)base;
  atomic_fetch_add(&file->fault->syncs, 1);
  if (hit_change(file->fault, 0)) return SQLITE_IOERR_FSYNC;
  (void)flags;
  // The kernel's own synchronisation takes time and proves nothing here.
  if (file->entry) {
    for (struct change *change = file->entry->first; change; change = change->next) {
      apply(file->entry, change, change->count);
    }
    forget(file->entry);
  }
  return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size) {
  if (hit(FAULT(base))) return SQLITE_IOERR_FSTAT;
  return REAL(base)->pMethods->xFileSize(REAL(base), size);
}

static int file_lock(sqlite3_file *base, int level) {
  if (hit(FAULT(base))) return SQLITE_IOERR_LOCK;
  return REAL(base)->pMethods->xLock(REAL(base), level);
}

static int file_unlock(sqlite3_file *base, int level) {
  return REAL(base)->pMethods->xUnlock(REAL(base), level);
}

static int file_check_lock(sqlite3_file *base, int *result) {
  return REAL(base)->pMethods->xCheckReservedLock(REAL(base), result);
}

static int file_control(sqlite3_file *base, int operation, void *argument) {
  return REAL(base)->pMethods->xFileControl(REAL(base), operation, argument);
}

static int file_sector(sqlite3_file *base) { return REAL(base)->pMethods->xSectorSize(REAL(base)); }

static int file_characteristics(sqlite3_file *base) {
  return REAL(base)->pMethods->xDeviceCharacteristics(REAL(base));
}

static int file_shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **memory) {
  if (hit(FAULT(base))) return SQLITE_IOERR_SHMMAP;
  return REAL(base)->pMethods->xShmMap(REAL(base), region, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *base, int offset, int count, int flags) {
  // Letting go of a lock does not fail.
  if (flags & SQLITE_SHM_LOCK && hit(FAULT(base))) return SQLITE_IOERR_SHMLOCK;
  return REAL(base)->pMethods->xShmLock(REAL(base), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *base) { REAL(base)->pMethods->xShmBarrier(REAL(base)); }

static int file_shm_unmap(sqlite3_file *base, int deletes) {
  return REAL(base)->pMethods->xShmUnmap(REAL(base), deletes);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

// MARK: The file system

#define VFS(v) ((struct relink_fault *)(v)->pAppData)

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *given) {
  struct relink_fault *fault = VFS(vfs);
  struct file *file = (struct file *)base;
  base->pMethods = NULL;
  if (hit(fault)) return SQLITE_CANTOPEN;
  memset(file, 0, sizeof *file);
  file->fault = fault;
  file->real = (sqlite3_file *)(file + 1);
  const int result = fault->real->xOpen(fault->real, name, file->real, flags, given);
  if (file->real->pMethods) base->pMethods = &methods;
  if (result == SQLITE_OK && name) {
    file->entry = find(fault, name);
    struct stat status;
    const int is_other = stat(name, &status) == 0 && status.st_ino != file->entry->inode;
    if (file->entry->openings++ == 0 && (is_other || !file->entry->image)) load(file->entry);
  }
  return result;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs) {
  struct relink_fault *fault = VFS(vfs);
  if (hit_change(fault, 0)) return SQLITE_IOERR_DELETE;
  const int result = fault->real->xDelete(fault->real, name, syncs);
  if (result == SQLITE_OK) load(find(fault, name));
  return result;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  if (hit(VFS(vfs))) return SQLITE_IOERR_ACCESS;
  return VFS(vfs)->real->xAccess(VFS(vfs)->real, name, flags, result);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int count, char *path) {
  return VFS(vfs)->real->xFullPathname(VFS(vfs)->real, name, count, path);
}

static int vfs_randomness(sqlite3_vfs *vfs, int count, char *bytes) {
  return VFS(vfs)->real->xRandomness(VFS(vfs)->real, count, bytes);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) {
  return VFS(vfs)->real->xSleep(VFS(vfs)->real, microseconds);
}

static int vfs_time(sqlite3_vfs *vfs, double *time) {
  return VFS(vfs)->real->xCurrentTime(VFS(vfs)->real, time);
}

static int vfs_last_error(sqlite3_vfs *vfs, int count, char *text) {
  (void)vfs, (void)count, (void)text;
  return 0;
}

struct relink_fault *relink_fault_create(const char *name) {
  sqlite3_initialize();
  struct relink_fault *fault = calloc(1, sizeof *fault);
  if (!fault) return NULL;
  fault->real = sqlite3_vfs_find(NULL);
  fault->vfs = (sqlite3_vfs){
      .iVersion = 1,
      .szOsFile = (int)sizeof(struct file) + fault->real->szOsFile,
      .mxPathname = fault->real->mxPathname,
      .zName = strdup(name),
      .pAppData = fault,
      .xOpen = vfs_open,
      .xDelete = vfs_delete,
      .xAccess = vfs_access,
      .xFullPathname = vfs_full_path,
      .xRandomness = vfs_randomness,
      .xSleep = vfs_sleep,
      .xCurrentTime = vfs_time,
      .xGetLastError = vfs_last_error,
  };
  if (!fault->vfs.zName || sqlite3_vfs_register(&fault->vfs, 0) != SQLITE_OK) abort();
  return fault;
}

void relink_fault_destroy(struct relink_fault *fault) {
  sqlite3_vfs_unregister(&fault->vfs);
  while (fault->entries) {
    struct entry *entry = fault->entries;
    fault->entries = entry->next;
    forget(entry);
    free(entry->image);
    free(entry->path);
    free(entry);
  }
  free((char *)fault->vfs.zName);
  free(fault);
}

void relink_fault_plan(struct relink_fault *fault, int kind, uint64_t first, uint64_t count, uint64_t seed) {
  fault->seed = seed;
  atomic_store(&fault->calls, 0);
  atomic_store(&fault->fired, 0);
  atomic_store(&fault->from, first);
  atomic_store(&fault->until, count > UINT64_MAX - first ? UINT64_MAX : first + count);
  atomic_store(&fault->kind, kind);
}

void relink_fault_heal(struct relink_fault *fault) { atomic_store(&fault->kind, 0); }

uint64_t relink_fault_calls(const struct relink_fault *fault) { return atomic_load(&fault->calls); }

int relink_fault_fired(const struct relink_fault *fault) { return atomic_load(&fault->fired); }

uint64_t relink_fault_syncs(const struct relink_fault *fault) { return atomic_load(&fault->syncs); }

static int ends_with(const char *text, const char *end) {
  const size_t count = strlen(text), tail = strlen(end);
  return count >= tail && strcmp(text + count - tail, end) == 0;
}

int relink_fault_restart(struct relink_fault *fault) {
  int result = 0;
  for (struct entry *entry = fault->entries; entry; entry = entry->next) {
    struct stat status;
    if (entry->openings != 0) return -1;
    // Gone, or another file by now, which was synchronised before it took this name.
    if (stat(entry->path, &status) != 0 || status.st_ino != entry->inode) continue;
    for (struct change *change = entry->first; change; change = change->next) {
      const uint64_t choice = draw(fault);
      size_t count = change->count;
      if (choice % 4 == 0) continue;
      // A disk writes whole sectors.
      if (choice % 4 == 1 && count > 0) count = (choice >> 8) % count / 512 * 512;
      apply(entry, change, count);
    }
    forget(entry);
    const int descriptor = open(entry->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (descriptor < 0) return -1;
    if (write(descriptor, entry->image, entry->size) != (ssize_t)entry->size) result = -1;
    close(descriptor);
    // The index of a log lives in memory.
    if (ends_with(entry->path, "-wal")) {
      char name[4096];
      snprintf(name, sizeof name, "%.*s-shm", (int)(strlen(entry->path) - 4), entry->path);
      unlink(name);
    }
  }
  relink_fault_heal(fault);
  return result;
}
