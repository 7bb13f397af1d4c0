// Opens the store of uploaded files, after checking that it is the one that this installation uses.

import { randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BucketConfig, ObjectStore } from '../../domain/media/object-store.ts';
import { withDeadline } from '../../platform/deadline.ts';
import { type MediaHome, registerMediaHome } from '../postgres/media/media-home.ts';
import type { PostgresClient } from '../postgres/pool.ts';
import { makeDirectoryDurably, syncDirectory, writeSynced } from '../spool/durable-file.ts';
import { DiskObjects } from './disk-objects.ts';
import { BucketRefusal, S3Objects } from './s3-objects.ts';

/** The longest that a starting process waits for a service that stalls. */
const CHECK_MS = 5_000;

class ForeignMediaHome extends Error {
  override readonly name = 'ForeignMediaHome';
}

interface OpenParams {
  readonly postgres: PostgresClient;
  readonly storage: 'disk' | BucketConfig;
  readonly dataDirectory: string;
  readonly log: { warn(fields: object, message: string): void };
  /** The time limit for the check of the bucket at the start. */
  readonly checkMs?: number;
}

/** Throws ForeignMediaHome if the installation's files are kept elsewhere, or an Error if the bucket refuses a call. */
export async function openObjects(params: OpenParams): Promise<ObjectStore> {
  const { postgres, storage, dataDirectory, log, checkMs = CHECK_MS } = params;
  const directory = mediaDirectory(dataDirectory);
  const here = homeOf(storage, directory);
  const home = await registerMediaHome(postgres, here);
  if (home.kind !== here.kind || home.place !== here.place) throw new ForeignMediaHome(explain(home));
  return storage === 'disk' ? new DiskObjects(directory) : openBucket(storage, directory, log, checkMs);
}

export function homeOf(storage: 'disk' | BucketConfig, directory: string): MediaHome {
  return storage === 'disk' ? { kind: 'disk', place: readMark(directory) } : { kind: 's3', place: storage.url };
}

function explain({ kind, place }: MediaHome): string {
  const where =
    kind === 's3' ? `in ${place}` : 'in the DATA_DIR of another machine, or of this one before it was moved';
  return (
    `MEDIA: the uploaded files of this installation lie ${where}. Once they are copied to where the settings say, ` +
    '"tollgate media home" makes that their place'
  );
}

/** An unreachable service must not prevent generating, so it is only logged. A service that refuses us is an error. */
async function openBucket(
  bucket: BucketConfig,
  directory: string,
  log: OpenParams['log'],
  checkMs: number,
): Promise<ObjectStore> {
  const objects = new S3Objects(bucket, join(directory, 'staged'));
  try {
    await withDeadline(objects.check(), checkMs);
  } catch (error) {
    if (!(error instanceof BucketRefusal)) {
      log.warn({ err: error }, 'the bucket of uploaded files cannot be reached; it is tried again with each file');
      return objects;
    }
    throw new Error(`MEDIA_BUCKET_URL: the bucket cannot be used: ${error.message}`, { cause: error });
  }
  return objects;
}

export function mediaDirectory(dataDirectory: string): string {
  return join(dataDirectory, 'media');
}

/** A random text that identifies this directory. A copy of the directory or a shared volume has the same text. */
function readMark(directory: string): string {
  const path = join(directory, 'mark');
  makeDirectoryDurably(directory);
  if (!existsSync(path)) writeMark(directory, path);
  return readFileSync(path, 'utf8').trim();
}

/** Processes that start at the same time agree on the mark of the first one. */
function writeMark(directory: string, path: string): void {
  const mark = randomUUID();
  const own = `${path}.${mark}`;
  writeSynced(own, `${mark}\n`);
  try {
    linkSync(own, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own);
  }
  syncDirectory(directory);
}
