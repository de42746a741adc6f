/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reads records of replay.h from standard input, runs the arithmetic of the table in REMY_HEADER,
 * and writes the answers to standard output. Both are in native byte order. */
#include <stdio.h>

#include REMY_HEADER
#include "replay.h"

enum { kRecords = 4096 };

int main(void) {
  static remy_u64 records[kRecords][5];
  static remy_u64 answers[kRecords][3];
  struct remy_state state;
  size_t count;
  remy_start(&state);
  while ((count = fread(records, sizeof(records[0]), kRecords, stdin)) > 0) {
    size_t i;
    for (i = 0; i < count; ++i) {
      remy_replay(&state, records[i], answers[i]);
    }
    if (fwrite(answers, sizeof(answers[0]), count, stdout) != count) {
      return 1;
    }
  }
  return ferror(stdin) != 0;
}
