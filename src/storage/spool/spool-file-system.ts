// The few system calls that the spool writer makes, as an interface, so that tests can fail any of them (disk full, I/O error, short write).

import { closeSync, fdatasync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
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
};
