// The files that each tenant has uploaded in a run: files filled with its mark, and a few whose bytes all tenants
// upload, each as a file of its own.

import type { SeededRandom } from '../simulation/seeded-random.ts';
import { filled, markOf } from './marks.ts';

export interface MediaFile {
  readonly id: string;
  readonly tenant: number;
  readonly url: string;
  readonly content: MediaContent;
  /** How many steps use the file now; while there are any, no step deletes it. */
  users: number;
}

export interface MediaContent {
  readonly bytes: Buffer;
  readonly type: string;
  /** The index of the bytes that all tenants upload; null: the bytes are the tenant's own. */
  readonly common: number | null;
}

const SIZES = [0, 1, 100, 1_000, 4_096, 4_097, 65_535, 65_536, 65_537, 200_000, 262_145, 1_000_000] as const;
const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const COMMON_COUNT = 4;
const COMMON_BYTES = [10, 5_000, 65_536, 300_000] as const;
/** When a tenant has more files than this, files are deleted, so that a long run fills no disk. */
export const FILES_MAX = 30;

/** The bytes of one upload of a tenant; no other upload has this `index`. */
export function ownContent(tenant: number, index: number, random: SeededRandom): MediaContent {
  const text = filled(markOf(tenant, 'p', index), random.pick(SIZES));
  const isPicture = random.chance(0.3);
  // The end of the file contains its index, even if the file is too short for a whole mark.
  const bytes = Buffer.concat([...(isPicture ? [PNG] : []), text, Buffer.from(`.${index}`)]);
  return { bytes, type: isPicture ? 'image/png' : 'text/plain', common: null };
}

/** Bytes that every tenant of a run uploads. */
export function commonContent(random: SeededRandom, run: number): MediaContent {
  const common = random.below(COMMON_COUNT);
  const bytes = Buffer.alloc(COMMON_BYTES[common] ?? 0, `${run}.${common} of everybody `);
  return { bytes, type: 'text/plain', common };
}

/** Whether a tenant has some of the common bytes. Only the tenant's own uploads of them decide that. */
export type CommonState = 'never uploaded' | 'under way' | 'kept' | 'unknown';

export class MediaFiles {
  /** By tenant: the files that it was told of and has not deleted. */
  private readonly live = new Map<number, MediaFile[]>();
  private readonly commons = new Map<string, CommonState>();
  /** The tenant to which an id belongs or belonged. */
  private readonly owners = new Map<string, number>();

  ownerOf(id: string): number | null {
    return this.owners.get(id) ?? null;
  }

  of(tenant: number): readonly MediaFile[] {
    return this.live.get(tenant) ?? [];
  }

  add(file: MediaFile): void {
    this.owners.set(file.id, file.tenant);
    const live = this.live.get(file.tenant);
    if (live === undefined) this.live.set(file.tenant, [file]);
    else if (!live.some(({ id }) => id === file.id)) live.push(file);
  }

  /** Removes the file: no further step uses it. */
  forget(file: MediaFile): void {
    const live = this.live.get(file.tenant) ?? [];
    live.splice(live.indexOf(file), 1);
  }

  /** Returns a random file of the tenant, or of the others of whom the tenant must know nothing. */
  pick(random: SeededRandom, tenant: number, whose: 'own' | 'foreign'): MediaFile | null {
    const all =
      whose === 'own'
        ? this.of(tenant)
        : [...this.live].filter(([one]) => one !== tenant).flatMap(([, files]) => files);
    return all.length === 0 ? null : random.pick(all);
  }

  commonOf(tenant: number, common: number): CommonState {
    return this.commons.get(`${tenant} ${common}`) ?? 'never uploaded';
  }

  setCommon(tenant: number, common: number | null, state: CommonState): void {
    if (common !== null) this.commons.set(`${tenant} ${common}`, state);
  }
}
