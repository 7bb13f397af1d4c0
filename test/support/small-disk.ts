// A small ext4 disk in a file, for a test that fills it or makes it read-only like a broken disk. Needs root.

import { execFileSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEGABYTE = 1_000_000;

const run = (program: string, ...words: readonly string[]): void =>
  void execFileSync(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });

export class SmallDisk {
  /** The directory where it is mounted. */
  readonly directory: string;
  private readonly home: string;
  private readonly image: string;

  /** Throws if this process may not mount. */
  constructor(megabytes: number) {
    this.home = mkdtempSync(join(tmpdir(), 'tollgate-disk-'));
    this.image = join(this.home, 'image');
    this.directory = join(this.home, 'disk');
    mkdirSync(this.directory);
    const fd = openSync(this.image, 'w');
    ftruncateSync(fd, megabytes * MEGABYTE);
    closeSync(fd);
    run('mkfs.ext4', '-q', '-m', '0', this.image);
    run('mount', '-o', 'loop', this.image, this.directory);
  }

  private get ballast(): string {
    return join(this.directory, 'ballast');
  }

  /** Fills the disk to the last block. */
  fill(): void {
    const fd = openSync(this.ballast, 'a');
    for (let bytes = MEGABYTE; bytes >= 512; ) {
      try {
        if (writeSync(fd, Buffer.alloc(bytes, 'x')) < bytes) bytes /= 2;
      } catch {
        bytes /= 2;
      }
    }
    closeSync(fd);
  }

  empty(): void {
    rmSync(this.ballast, { force: true });
  }

  /**
   * Makes the disk read-only, as the system does after a disk error: files that are open for writing can no longer be
   * written. Earlier writes are on the disk.
   */
  breakOff(): void {
    run('sync', '-f', this.directory);
    run('mount', '-o', 'remount,abort', this.directory);
    try {
      // The file system aborts its journal at the next write.
      closeSync(openSync(join(this.directory, 'last'), 'w'));
    } catch {
      // This failure is expected.
    }
  }

  /** Repairs the disk as an operator would. None of its files may be open. */
  repair(): void {
    run('umount', this.directory);
    // Exit code 1 means that errors were corrected.
    run('sh', '-c', `e2fsck -p ${this.image} || [ $? -eq 1 ]`);
    run('mount', '-o', 'loop', this.image, this.directory);
  }

  remove(): void {
    run('umount', this.directory);
    rmSync(this.home, { recursive: true });
  }
}
