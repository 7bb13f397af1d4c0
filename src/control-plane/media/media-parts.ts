// What the routes of uploaded files are given by the composition root, and how they tell that storage failed.

import type { MediaLimits, MediaObject, ReceivedFile } from '../../domain/media/media-object.ts';
import type { ObjectStore } from '../../domain/media/object-store.ts';
import type { SignedAddresses } from '../../domain/media/signed-address.ts';
import type { TimeSlices } from '../../platform/event-loop/time-slices.ts';
import type { FairQueue } from '../../platform/fair-queue.ts';
import type { DownloadPlaces } from './download-places.ts';
import type { MediaMetrics } from './media-metrics.ts';

/** An upload under way. */
export interface Upload {
  /** Of the object to be. */
  readonly id: string;
  readonly organizationId: string;
  readonly apiKeyId: string | null;
}

export interface KeptUpload {
  readonly object: MediaObject;
  /** The organization had these bytes already, under this id. */
  readonly isDeduped: boolean;
}

/** Rows of uploads and objects. */
export interface MediaStore {
  /** How many bytes the file may have, at most those asked for; null: the organization has no room. */
  reserve(upload: Upload, bytes: number): Promise<number | null>;
  /** Nothing happens to an upload that is finished. */
  release(upload: Upload): Promise<void>;
  /** null: the organization does not have these bytes. */
  finishDuplicate(upload: Upload, file: ReceivedFile): Promise<KeptUpload | null>;
  /** null: the upload took so long that its reservation is gone. */
  finish(upload: Upload, file: ReceivedFile): Promise<KeptUpload | null>;
  find(id: string, organizationId: string): Promise<MediaObject | null>;
  /** For whoever has its public address; null also while its organization is frozen. */
  findPublic(id: string): Promise<MediaObject | null>;
}

export interface Media {
  readonly store: MediaStore;
  readonly objects: ObjectStore;
  readonly limits: MediaLimits;
  /** Uploads under way in this process; the others wait, and organizations take turns. */
  readonly uploads: FairQueue;
  /** Those of the event loop in which an upload under way reads on. */
  readonly slices: TimeSlices;
  readonly downloads: DownloadPlaces;
  readonly metrics: MediaMetrics;
  /** null: nobody reads without a credential. */
  readonly addresses: SignedAddresses | null;
  readonly retrieval: 'bytes' | 'url';
  /** The address that answers name (spec 2.2, `url`). */
  urlOf(object: MediaObject): string;
  /** Adds to what the organization is shown as its use. */
  countServed(organizationId: string, bytes: number): void;
  readonly log: { error(fields: object, message: string): void };
}

/**
 * Uploads of a process at once. Of an upload some megabytes arrive although its socket is paused, and are
 * held until the disk has taken them. A client may send slowly, so one organization has half of the places.
 */
export const UPLOADS_AT_ONCE = {
  underWayMax: 8,
  underWayOfSourceMax: 4,
  waitingMax: 256,
  waitMsMax: 120_000,
} as const;

/** Where files are kept failed. What failed is its cause. */
export class StorageFailed extends Error {
  override readonly name = 'StorageFailed';

  constructor(cause: unknown) {
    super('where uploaded files are kept failed', { cause });
  }
}

export async function inStorage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new StorageFailed(cause);
  }
}
