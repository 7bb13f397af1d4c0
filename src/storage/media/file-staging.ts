// Receives files on the local disk, each under its id in a staging directory. A file is complete and synced before it
// is kept.

import { constants, type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { StagedFile } from '../../domain/media/object-store.ts';
import { makeDirectoryDurably } from '../spool/durable-file.ts';

const MODE = 0o600;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class FileStaging {
  private readonly directory: string;
  private readonly syncing = new SyncQueue();

  constructor(directory: string) {
    makeDirectoryDurably(directory);
    this.directory = directory;
  }

  async stage(id: string): Promise<StagedFile> {
    const path = join(this.directory, id);
    const file = await open(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, MODE);
    return new OpenStagedFile(id, path, file, this.syncing);
  }

  async list(): Promise<readonly string[]> {
    return (await readdir(this.directory)).filter((name) => ID.test(name));
  }

  async remove(id: string): Promise<void> {
    if (ID.test(id)) await rm(join(this.directory, id), { force: true });
  }
}

/**
 * Syncs one file at a time. A sync holds one of libuv's few threads for as long as the disk takes, and the spool needs
 * the same threads to sync the records of generations.
 */
class SyncQueue {
  private last: Promise<unknown> = Promise.resolve();

  run(sync: () => Promise<void>): Promise<void> {
    const done = this.last.then(sync);
    this.last = done.catch(() => undefined);
    return done;
  }
}

class OpenStagedFile implements StagedFile {
  readonly id: string;
  readonly path: string;
  /** null: the file is closed. */
  private file: FileHandle | null;
  private readonly syncing: SyncQueue;

  constructor(id: string, path: string, file: FileHandle, syncing: SyncQueue) {
    this.id = id;
    this.path = path;
    this.file = file;
    this.syncing = syncing;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { file } = this;
    if (file === null) throw new Error('a staged file was written to after its end');
    // A write to a nearly full disk may be short.
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, at, bytes.length - at);
      at += bytesWritten;
    }
  }

  async finish(): Promise<void> {
    const { file } = this;
    if (file === null) throw new Error('a staged file was finished twice');
    await this.syncing.run(() => file.sync());
    this.file = null;
    await file.close();
  }

  async discard(): Promise<void> {
    const { file } = this;
    this.file = null;
    // Errors are ignored: the job sweep-media removes the file later.
    await file?.close().catch(() => undefined);
    await rm(this.path, { force: true }).catch(() => undefined);
  }
}

export function isObjectId(name: string): boolean {
  return ID.test(name);
}
