// Counts the downloads of uploaded files under way in a process, and how many of them are of one organization's files:
// whoever has an address may read as slowly as he likes, and the files of others are served all the same.

const DOWNLOADS_MAX = 512;
export const DOWNLOADS_OF_ORGANIZATION_MAX = 128;

export class DownloadPlaces {
  private readonly ofOrganization = new Map<string, number>();
  private count = 0;

  get underWay(): number {
    return this.count;
  }

  /** False: there is no place, and nothing is to be given back. */
  take(organizationId: string): boolean {
    const own = this.ofOrganization.get(organizationId) ?? 0;
    if (this.count >= DOWNLOADS_MAX || own >= DOWNLOADS_OF_ORGANIZATION_MAX) return false;
    this.count += 1;
    this.ofOrganization.set(organizationId, own + 1);
    return true;
  }

  giveBack(organizationId: string): void {
    const rest = (this.ofOrganization.get(organizationId) ?? 0) - 1;
    this.count -= 1;
    if (rest > 0) this.ofOrganization.set(organizationId, rest);
    else this.ofOrganization.delete(organizationId);
  }
}
