// Keeps groups for the turns to come: memory with room left is filled on, and full memory is filled again once no sync
// has to cover it any more. Fresh memory for each turn cost 7 % of a request, and counts as garbage: some ten kilobytes
// a request made a slow process collect its whole heap twice a second.

import { RecordGroup } from '../../records/record-group.ts';

/** More than twenty milliseconds of full load take; and none that is longer than this. */
const GROUPS_MAX = 32;
const GROUP_BYTES_MAX = 262_144;

export class FreeGroups {
  readonly #free: RecordGroup[] = [];
  /** Has room behind what it had before. */
  #begun: RecordGroup | null = null;

  take(): RecordGroup {
    const begun = this.#begun;
    if (begun === null) return this.#free.pop() ?? new RecordGroup();
    this.#begun = null;
    return begun;
  }

  /** What it has is written and stays as it lies; the next group lies behind it. */
  goOn(group: RecordGroup): void {
    group.goOn();
    this.#begun = group;
  }

  /** Nobody reads or writes it any more, nor what it had before. */
  letGo(group: RecordGroup): void {
    if (this.#free.length >= GROUPS_MAX || group.bytes.length > GROUP_BYTES_MAX) return;
    group.clear();
    this.#free.push(group);
  }
}
