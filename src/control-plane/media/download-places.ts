// Limits the downloads of uploaded files under way in a process, because anybody who has an address may read as slowly
// as they like. A download counts in each group that it belongs to.

import type { MediaObject } from '../../domain/media/media-object.ts';
import type { MediaAudience } from '../../domain/media/serving-headers.ts';

/**
 * Limits for a whole process, for one organization's files, for those of them that are read without a key, and for one
 * file that is read without a key.
 */
export const DOWNLOADS_MAX = { process: 512, organization: 128, publicOfOrganization: 96, publicOfFile: 64 } as const;

type Group = readonly [name: string, max: number];

export class DownloadPlaces {
  private readonly counts = new Map<string, number>();

  get underWay(): number {
    return this.counts.get(PROCESS[0]) ?? 0;
  }

  /** False: there is no place, and nothing is to be given back. */
  take(object: Downloaded, audience: MediaAudience): boolean {
    const groups = groupsOf(object, audience);
    if (groups.some(([name, max]) => (this.counts.get(name) ?? 0) >= max)) return false;
    for (const [name] of groups) this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return true;
  }

  giveBack(object: Downloaded, audience: MediaAudience): void {
    for (const [name] of groupsOf(object, audience)) {
      const rest = (this.counts.get(name) ?? 0) - 1;
      if (rest > 0) this.counts.set(name, rest);
      else this.counts.delete(name);
    }
  }
}

type Downloaded = Pick<MediaObject, 'id' | 'organizationId'>;

const PROCESS: Group = ['process', DOWNLOADS_MAX.process];

function groupsOf({ id, organizationId }: Downloaded, audience: MediaAudience): readonly Group[] {
  const own: readonly Group[] = [PROCESS, [organizationId, DOWNLOADS_MAX.organization]];
  if (audience === 'organization') return own;
  return [...own, [`public ${organizationId}`, DOWNLOADS_MAX.publicOfOrganization], [id, DOWNLOADS_MAX.publicOfFile]];
}
