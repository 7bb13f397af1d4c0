// What the composition root gives to the routes of uploaded files, and the error that says that storage failed.

import type { MediaLimits, MediaObject, ReceivedFile } from '../../domain/media/media-object.ts';
import type { ObjectStore } from '../../domain/media/object-store.ts';
import type { SignedAddresses } from '../../domain/media/signed-address.ts';
import type { TimeSlices } from '../../platform/event-loop/time-slices.ts';
import type { FairQueue } from '../../platform/fair-queue.ts';
import type { DownloadPlaces } from './download-places.ts';
import type { MediaMetrics } from './media-metrics.ts';

/** An upload under way. */
export interface Upload {
  /** The id that the object will have. */
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
  /** Ends the reservation. Nothing happens to an upload that is finished. */
  release(upload: Upload): Promise<void>;
  /** null: the organization does not have these bytes. */
  finishDuplicate(upload: Upload, file: ReceivedFile): Promise<KeptUpload | null>;
  /** null: the upload took so long that its reservation is gone. */
  finish(upload: Upload, file: ReceivedFile): Promise<KeptUpload | null>;
  find(id: string, organizationId: string): Promise<MediaObject | null>;
  /** A file for anybody who has its public address; null while its organization is frozen, too. */
  findPublic(id: string): Promise<MediaObject | null>;
}

export interface Media {
  readonly store: MediaStore;
  readonly objects: ObjectStore;
  readonly limits: MediaLimits;
  /** Uploads under way in this process; the others wait, and organizations take turns. */
  readonly uploads: FairQueue;
  /** The slices of the event loop's time in which uploads read. */
  readonly slices: TimeSlices;
  readonly downloads: DownloadPlaces;
  readonly metrics: MediaMetrics;
  /** The public addresses of files; null: nobody reads without a credential. */
  readonly addresses: SignedAddresses | null;
  readonly retrieval: 'bytes' | 'url';
  /** The address that answers name (spec 2.2, `url`). */
  urlOf(object: MediaObject): string;
  /** Adds to what the organization is shown as its use. */
  countServed(organizationId: string, bytes: number): void;
  readonly log: { error(fields: object, message: string): void };
}

/**
 * How many uploads a process receives at once. Some megabytes of each arrive although its socket is paused, and are
 * held in memory until the disk has taken them. A client may send slowly, so one organization gets only half of the
 * places.
 */
export const UPLOADS_AT_ONCE = {
  underWayMax: 8,
  underWayOfSourceMax: 4,
  waitingMax: 256,
  waitMsMax: 120_000,
} as const;

/** The storage of files has failed. `cause` is the error. */
export class StorageFailed extends Error {
  override readonly name = 'StorageFailed';

  constructor(cause: unknown) {
    super('the storage of uploaded files failed', { cause });
  }
}

export async function inStorage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new StorageFailed(cause);
  }
}
