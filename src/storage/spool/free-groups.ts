// Keeps the groups that no sync has to cover any more for the turns to come: fresh memory for each turn cost 7 % of a request.

import { RecordGroup } from '../../platform/record-group.ts';

/** As many as twenty milliseconds of load bring, each no longer than this. */
const GROUPS_MAX = 64;
const GROUP_BYTES_MAX = 262_144;

export class FreeGroups {
  readonly #groups: RecordGroup[] = [];

  take(): RecordGroup {
    return this.#groups.pop() ?? new RecordGroup();
  }

  /** Nobody reads or writes it any more. */
  letGo(group: RecordGroup): void {
    if (this.#groups.length >= GROUPS_MAX || group.bytes.length > GROUP_BYTES_MAX) return;
    group.clear();
    this.#groups.push(group);
  }
}
