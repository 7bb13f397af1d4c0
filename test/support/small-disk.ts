// A small ext4 disk in a file, for a test that fills it or makes it read-only as a broken disk does. Needs root.

import { execFileSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEGABYTE = 1_000_000;

const run = (program: string, ...words: readonly string[]): void =>
  void execFileSync(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });

export class SmallDisk {
  /** Where it is mounted. */
  readonly directory: string;
  private readonly home: string;
  private readonly image: string;

  /** Throws where nobody may mount. */
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

  /** Not a block is left. */
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
   * As the system does after an error of the disk: whoever has a file open for writing can write to it no more. What
   * was written before is on it.
   */
  breakOff(): void {
    run('sync', '-f', this.directory);
    run('mount', '-o', 'remount,abort', this.directory);
    try {
      // The journal is given up at the next write.
      closeSync(openSync(join(this.directory, 'last'), 'w'));
    } catch {
      // That was it.
    }
  }

  /** What an operator does then. No file of it may be open. */
  repair(): void {
    run('umount', this.directory);
    // 1: errors were corrected.
    run('sh', '-c', `e2fsck -p ${this.image} || [ $? -eq 1 ]`);
    run('mount', '-o', 'loop', this.image, this.directory);
  }

  remove(): void {
    run('umount', this.directory);
    rmSync(this.home, { recursive: true });
  }
}
