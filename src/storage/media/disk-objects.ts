// Keeps uploaded files in a directory of this machine, each under its id. A file is renamed to its place when it is
// complete and synced, so that it is whole or absent whenever the machine stops.

import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ByteRange, ObjectStore, StagedFile } from '../../domain/media/object-store.ts';
import { makeDirectoryDurably } from '../spool/durable-file.ts';
import { FileStaging, isObjectId } from './file-staging.ts';

const PIECE_BYTES = 65_536;
const DIRECTORY_MODE = 0o700;

export class DiskObjects implements ObjectStore {
  private readonly objects: string;
  private readonly staging: FileStaging;

  /** All files are below `directory`, which is created if it is missing. */
  constructor(directory: string) {
    this.objects = join(directory, 'objects');
    makeDirectoryDurably(this.objects);
    this.staging = new FileStaging(join(directory, 'staged'));
  }

  stage(id: string): Promise<StagedFile> {
    return this.staging.stage(id);
  }

  async keep(staged: StagedFile): Promise<void> {
    const directory = this.directoryOf(staged.id);
    if ((await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE })) !== undefined) await syncPath(this.objects);
    await rename(staged.path, join(directory, staged.id));
    await syncPath(directory);
  }

  async read(id: string, { first, last }: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    if (!isObjectId(id)) return null;
    try {
      return readPieces(await open(join(this.directoryOf(id), id), 'r'), first, last);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    if (isObjectId(id)) await rm(join(this.directoryOf(id), id), { force: true });
  }

  removeStaged(id: string): Promise<void> {
    return this.staging.remove(id);
  }

  async *list(): AsyncIterable<{ id: string; isStaged: boolean }> {
    for (const name of await readdir(this.objects))
      for (const id of await readdir(join(this.objects, name))) if (isObjectId(id)) yield { id, isStaged: false };
    for (const id of await this.staging.list()) yield { id, isStaged: true };
  }

  /** Objects are spread over 256 directories by the first two digits of their ids. */
  private directoryOf(id: string): string {
    return join(this.objects, id.slice(0, 2));
  }
}

async function* readPieces(file: FileHandle, first: number, last: number): AsyncGenerator<Uint8Array> {
  try {
    const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Math.max(1, last - first + 1)));
    for (let at = first; at <= last; ) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, last - at + 1), at);
      if (bytesRead === 0) throw new Error('an object is shorter than its row says');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** A renamed file is durable under its new name only after its directory was synced. */
async function syncPath(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
