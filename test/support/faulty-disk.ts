// A disk in memory for the spool writer, whose faults depend on a seed: full at any byte, I/O errors, syncs that fail
// and drop what they should have written, or whose failure another sync of the same file reports. Nothing happens on it
// by itself: the test decides when syncs end.

import type { SpoolFileSystem } from '../../src/storage/spool/spool-file-system.ts';

/**
 * The state of a byte or of a file's name: only in memory, on the platter, or dropped by a failed sync and lost for
 * ever.
 */
const DIRTY = 0;
const DURABLE = 1;
const LOST = 2;

interface FaultyFile {
  readonly bytes: number[];
  readonly state: number[];
  /** The state of the file's name in its directory; a file without a durable name is not found after a power cut. */
  nameState: number;
}

interface RunningSync {
  readonly file: FaultyFile;
  readonly length: number;
  readonly done: (error: Error | null) => void;
  mustFail: boolean;
}

export class FaultyDisk implements SpoolFileSystem {
  /** The probability that a call fails. */
  trouble = 0;
  /** Bytes that the disk still takes; Infinity: never full. */
  room = Number.POSITIVE_INFINITY;
  /**
   * True: a torn or refused record may be on the disk, because something could not be cut off, or was written although
   * its write failed.
   */
  isUncertain = false;
  readonly #random: () => number;
  /**
   * True: dropped pages read as zeros at once, as in some file systems; false: they stay readable until the power is
   * cut.
   */
  readonly #dropsVisibly: boolean;
  readonly #files = new Map<string, FaultyFile>();
  readonly #open = new Map<number, FaultyFile>();
  readonly #syncs: RunningSync[] = [];
  readonly #fills: { bytes: number; done: (error: Error | null) => void }[] = [];
  #reserved = 0;
  #nextFd = 10;

  constructor(random: () => number) {
    this.#random = random;
    this.#dropsVisibly = random() < 0.5;
  }

  open(path: string): number {
    this.#mayFail('EIO');
    if (this.room <= 0) throw diskError('ENOSPC');
    if (this.#files.has(path)) throw diskError('EEXIST');
    const file: FaultyFile = { bytes: [], state: [], nameState: DIRTY };
    this.#files.set(path, file);
    this.#nextFd += 1;
    this.#open.set(this.#nextFd, file);
    return this.#nextFd;
  }

  write(fd: number, buffer: Buffer, offset: number, length: number): number {
    const fails = this.#random() < this.trouble;
    if (fails && this.#random() < 0.3) {
      // The write reports a failure, but a part of it is on the disk.
      this.#append(fd, buffer.subarray(offset, offset + Math.floor(length * this.#random())));
      this.isUncertain = true;
      throw diskError('EIO');
    }
    if (fails && this.#random() < 0.5) throw diskError('EIO');
    if (this.room <= 0) throw diskError('ENOSPC');
    const count = Math.min(length, this.room, fails ? Math.ceil(length * this.#random()) : length);
    this.room -= count;
    this.#append(fd, buffer.subarray(offset, offset + count));
    return count;
  }

  #append(fd: number, bytes: Buffer): void {
    const file = this.#file(fd);
    for (const byte of bytes) file.bytes.push(byte);
    for (let index = 0; index < bytes.length; index++) file.state.push(DIRTY);
  }

  fdatasync(fd: number, done: (error: Error | null) => void): void {
    const file = this.#file(fd);
    this.#syncs.push({ file, length: file.bytes.length, done, mustFail: false });
  }

  fdatasyncSync(fd: number): void {
    const file = this.#file(fd);
    const running = this.#syncs.find((sync) => sync.file === file);
    if (running !== undefined && this.#random() < this.trouble) {
      // The caller whose sync was first gets the failure.
      running.mustFail = true;
      this.#drop(file, file.bytes.length);
      return;
    }
    this.#endSync({ file, length: file.bytes.length }, this.#random() < this.trouble);
  }

  ftruncate(fd: number, length: number): void {
    if (this.#random() < this.trouble) {
      this.isUncertain = true;
      throw diskError('EIO');
    }
    const file = this.#file(fd);
    this.room += Math.max(0, file.bytes.length - length);
    file.bytes.length = length;
    file.state.length = length;
  }

  close(fd: number): void {
    this.#open.delete(fd);
  }

  syncDirectory(): void {
    const fails = this.#random() < this.trouble;
    for (const file of this.#files.values()) if (file.nameState === DIRTY) file.nameState = fails ? LOST : DURABLE;
    if (fails) throw diskError('EIO');
  }

  freeBytes(_path: string, done: (error: Error | null, bytes: number) => void): void {
    if (this.#random() < this.trouble) done(diskError('EIO'), 0);
    else done(null, Math.min(this.room, 1e9));
  }

  preallocate(_path: string, bytes: number, done: (error: Error | null) => void): void {
    this.#fills.push({ bytes, done });
  }

  remove(): void {
    this.room += this.#reserved;
    this.#reserved = 0;
  }

  /** Ends everything that was begun in the background, with or without a failure. */
  endBackgroundWork(): void {
    for (const sync of this.#syncs.splice(0)) {
      const fails = sync.mustFail || this.#random() < this.trouble;
      try {
        this.#endSync(sync, fails);
        sync.done(null);
      } catch (error) {
        sync.done(error as Error);
      }
    }
    for (const { bytes, done } of this.#fills.splice(0)) {
      if (bytes > this.room || this.#random() < this.trouble) {
        done(diskError('ENOSPC'));
        continue;
      }
      this.room -= bytes;
      this.#reserved = bytes;
      done(null);
    }
  }

  get isIdle(): boolean {
    return this.#syncs.length === 0 && this.#fills.length === 0;
  }

  /** What a reader sees of each segment, in order; `afterPowerCut`: only what was synced. */
  segments(view: { afterPowerCut: boolean }): Buffer[] {
    const paths = [...this.#files.keys()].sort();
    return paths.map((path) => {
      const { bytes, state, nameState } = this.#files.get(path) as FaultyFile;
      if (!view.afterPowerCut) return Buffer.from(bytes);
      if (nameState !== DURABLE) return Buffer.alloc(0);
      return Buffer.from(bytes.map((byte, index) => (state[index] === DURABLE ? byte : 0)));
    });
  }

  #endSync({ file, length }: Pick<RunningSync, 'file' | 'length'>, fails: boolean): void {
    if (fails) {
      this.#drop(file, length);
      throw diskError('EIO');
    }
    for (let index = 0; index < Math.min(length, file.state.length); index++)
      if (file.state[index] === DIRTY) file.state[index] = DURABLE;
  }

  #drop(file: FaultyFile, length: number): void {
    for (let index = 0; index < Math.min(length, file.state.length); index++) {
      if (file.state[index] !== DIRTY) continue;
      file.state[index] = LOST;
      if (this.#dropsVisibly) file.bytes[index] = 0;
    }
  }

  #file(fd: number): FaultyFile {
    const file = this.#open.get(fd);
    if (file === undefined) throw new Error('EBADF: a closed descriptor is used');
    return file;
  }

  #mayFail(code: string): void {
    if (this.#random() < this.trouble) throw diskError(code);
  }
}

function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: of the faulty disk`), { code });
}
