// The storage and the use of an organization's uploaded files, as administrators see them.

export interface MediaDay {
  /** In UTC, such as 2026-11-25. */
  readonly day: string;
  readonly uploads: number;
  /** Uploads of bytes that the organization had already. */
  readonly dedupedUploads: number;
  readonly uploadedBytes: number;
  readonly downloads: number;
  readonly servedBytes: number;
  readonly storedBytesMax: number;
}

export interface MediaUsage {
  readonly files: number;
  readonly storedBytes: number;
  /** Bytes reserved for uploads in progress. */
  readonly reservedBytes: number;
  /** Days on which anything was stored or happened, oldest first. */
  readonly days: readonly MediaDay[];
}
