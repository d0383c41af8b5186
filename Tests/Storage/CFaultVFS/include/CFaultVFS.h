#ifndef RELINK_CFAULTVFS_H
#define RELINK_CFAULTVFS_H

#include <stdint.h>

// A file system of SQLite's that breaks when it is told to: it passes calls on to the usual one, lets one of them fail,
// or loses power, after which each file has what was synchronised and, by a seed, parts of what was not.

enum {
  /// Fails with an error of input or output; by the seed a write writes nothing, a part or all of it before.
  RELINK_FAULT_IO = 1,
  /// Fails because the disk is full; by the seed a write writes nothing or a part of it before.
  RELINK_FAULT_FULL = 2,
  /// The power goes: this call and all later ones fail.
  RELINK_FAULT_POWER = 3,
};

struct relink_fault;

/// Registers a file system with this name, which has to live as long as it. Null when there is no memory.
struct relink_fault *relink_fault_create(const char *name);

/// Takes it out again; every file of it must be closed.
void relink_fault_destroy(struct relink_fault *fault);

/// Lets the calls from `first` (1 is the next one) up to `count` of them fail.
void relink_fault_plan(struct relink_fault *fault, int kind, uint64_t first, uint64_t count, uint64_t seed);

/// Lets nothing fail any more.
void relink_fault_heal(struct relink_fault *fault);

/// How many calls were counted since the plan was made: for IO each that can fail, for FULL writes, for POWER those that
/// change a file or make a change last.
uint64_t relink_fault_calls(const struct relink_fault *fault);

/// Whether a call has failed since the plan was made.
int relink_fault_fired(const struct relink_fault *fault);

/// How many calls of xSync there were since it was made.
uint64_t relink_fault_syncs(const struct relink_fault *fault);

/// After the power went and every file was closed: leaves on the disk what a restart would find, and heals.
/// Returns 0, or -1 when a file could not be written.
int relink_fault_restart(struct relink_fault *fault);

#endif
