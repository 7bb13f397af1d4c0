// What an organization's uploaded files take and were used for, as administrators read it.

export interface MediaDay {
  /** In UTC, such as 2026-11-25. */
  readonly day: string;
  readonly uploads: number;
  /** Of these, bytes that the organization had already. */
  readonly dedupedUploads: number;
  readonly uploadedBytes: number;
  readonly downloads: number;
  readonly servedBytes: number;
  readonly storedBytesMax: number;
}

export interface MediaUsage {
  readonly files: number;
  readonly storedBytes: number;
  /** Of uploads under way. */
  readonly reservedBytes: number;
  /** Days on which anything was stored or happened, oldest first. */
  readonly days: readonly MediaDay[];
}
