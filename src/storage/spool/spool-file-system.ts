// The system calls of the spool writer as an interface, so that tests can make any of them fail (disk full, I/O error,
// short write).

import { randomFillSync } from 'node:crypto';
import { closeSync, fdatasync, fdatasyncSync, ftruncateSync, openSync, rmSync, statfs, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { syncDirectory } from './durable-file.ts';

export interface SpoolFileSystem {
  /** Creates the file, which must not exist, for appending. */
  open(path: string): number;
  /** Returns how many bytes were written, which can be fewer than asked. */
  write(fd: number, buffer: Buffer, offset: number, length: number): number;
  fdatasync(fd: number, done: (error: Error | null) => void): void;
  fdatasyncSync(fd: number): void;
  ftruncate(fd: number, length: number): void;
  close(fd: number): void;
  syncDirectory(path: string): void;
  /** The free bytes of the directory's disk that a user other than root may still use. */
  freeBytes(path: string, done: (error: Error | null, bytes: number) => void): void;
  /** Creates a file that really occupies this many bytes of the disk; replaces an existing one. */
  preallocate(path: string, bytes: number, done: (error: Error | null) => void): void;
  /** Does nothing if the file does not exist. */
  remove(path: string): void;
}

/** O_APPEND: after a truncation the next write still lands at the end. */
export const nodeFileSystem: SpoolFileSystem = {
  open: (path) => openSync(path, 'ax', 0o600),
  write: (fd, buffer, offset, length) => writeSync(fd, buffer, offset, length),
  fdatasync: (fd, done) => fdatasync(fd, done),
  fdatasyncSync: (fd) => fdatasyncSync(fd),
  ftruncate: (fd, length) => ftruncateSync(fd, length),
  close: (fd) => closeSync(fd),
  syncDirectory: (path) => syncDirectory(path),
  freeBytes: (path, done) =>
    statfs(path, (error, found) => (error === null ? done(null, found.bavail * found.bsize) : done(error, 0))),
  preallocate: (path, bytes, done) => {
    fill(path, bytes).then(
      () => done(null),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
    );
  },
  remove: (path) => rmSync(path, { force: true }),
};

const CHUNK_BYTES = 1 << 20;

/** Random bytes, since a compressing file system would store nothing for zeros. */
async function fill(path: string, bytes: number): Promise<void> {
  const chunk = randomFillSync(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes)));
  const file = await open(path, 'w', 0o600);
  try {
    for (let left = bytes; left > 0; ) left -= (await file.write(chunk, 0, Math.min(chunk.length, left))).bytesWritten;
    await file.datasync();
  } finally {
    await file.close();
  }
}
