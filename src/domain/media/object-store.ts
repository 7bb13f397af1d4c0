// The contract of a store for the bytes of uploaded files: a directory of this machine, or a bucket.

import type { MediaObject, ReceivedFile } from './media-object.ts';

/** A bucket of an S3-compatible service. */
export interface BucketConfig {
  /** Its path is the bucket and the prefix of the object keys; without a trailing slash. */
  readonly url: string;
  readonly region: string;
  readonly keyId: string;
  readonly secret: string;
}

/** The first and the last byte, counted from 0. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** A file while it is being received. It lies on the local disk, whichever store keeps it later. */
export interface StagedFile {
  readonly id: string;
  readonly path: string;
  /** The bytes may be used again once this resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when everything that was written is on the disk. */
  finish(): Promise<void>;
  /** Removes the file unless the store has kept it. Never rejects. */
  discard(): Promise<void>;
}

export interface ObjectStore {
  stage(id: string): Promise<StagedFile>;
  /** The file is durable under its id when this resolves. It is complete there or absent, whenever a process dies. */
  keep(staged: StagedFile, file: ReceivedFile): Promise<void>;
  /** The bytes of the range in pieces, each valid until the next is asked for; null: there is no such object. */
  read(id: string, range: ByteRange): Promise<AsyncIterable<Uint8Array> | null>;
  /** An object that is not there counts as removed. */
  remove(id: string): Promise<void>;
  /** The ids of all objects, and of files that are or were being received. */
  list(): AsyncIterable<{ readonly id: string; readonly isStaged: boolean }>;
  /** Removes the staged file of a process that died while it received the file. */
  removeStaged(id: string): Promise<void>;
  /** An address that lets anybody read the object for a short while; absent if the store has no such addresses. */
  presign?(object: MediaObject): Promise<string>;
}
