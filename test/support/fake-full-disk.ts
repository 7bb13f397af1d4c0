// Loaded into every process of an installation before its own code (`node --import`). While the file named by
// FULL_DISK_FLAG exists, the disk accepts nothing more of a spool, including its reserve. The content of the file says
// how: `full` refuses writes, `short` accepts half of a write, `sync` loses what it accepted.

import fs, { existsSync, readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const flag = process.env.FULL_DISK_FLAG ?? '';
const spools = new Set<number>();
const { openSync, closeSync, writeSync, fdatasync } = fs;
const { open } = promises;

function fault(): string {
  return existsSync(flag) ? readFileSync(flag, 'utf8') : '';
}

function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: of a test`), { code });
}

/** Only the writer of a segment opens it for appending. */
fs.openSync = (path, flags, mode) => {
  const fd = openSync(path, flags, mode);
  if (flags === 'ax' && String(path).endsWith('.spool')) spools.add(fd);
  return fd;
};

fs.closeSync = (fd) => {
  spools.delete(fd);
  closeSync(fd);
};

fs.writeSync = ((fd: number, bytes: Buffer, offset: number, length: number) => {
  const how = spools.has(fd) ? fault() : '';
  if (how === 'full') throw diskError('ENOSPC');
  return writeSync(fd, bytes, offset, how === 'short' ? Math.floor(length / 2) : length);
}) as typeof writeSync;

fs.fdatasync = ((fd: number, done: (error: Error | null) => void) => {
  if (spools.has(fd) && fault() === 'sync') process.nextTick(done, diskError('EIO'));
  else fdatasync(fd, done);
}) as typeof fdatasync;

promises.open = async (path, flags, mode) => {
  if (String(path).endsWith('/reserve') && ['full', 'short'].includes(fault())) throw diskError('ENOSPC');
  return open(path, flags, mode);
};

syncBuiltinESMExports();
