// What keeps the bytes of uploaded files must be able to do: a directory of this machine, or a bucket.

import type { MediaObject, ReceivedFile } from './media-object.ts';

/** A bucket of an S3-compatible service. */
export interface BucketConfig {
  /** With the bucket, and what its keys begin with, as path; without a slash at its end. */
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

/** A file while it is received. It lies on the local disk, whatever keeps it in the end. */
export interface StagedFile {
  readonly id: string;
  readonly path: string;
  /** The bytes may be used again once this resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** All that was written is on the disk when this resolves. */
  finish(): Promise<void>;
  /** Removes it, unless it has been kept. Never rejects. */
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
  /** Removes what a process left behind that died while it received a file. */
  removeStaged(id: string): Promise<void>;
  /** An address at which whoever has it reads the object for a short while; absent where there is none. */
  presign?(object: MediaObject): Promise<string>;
}
