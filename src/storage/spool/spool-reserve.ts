// Reserves disk space for the terminal records of executions that were admitted before the disk filled up: a threshold
// of free space below which nothing is admitted, and a file that is deleted when other programs have used the rest.

import type { Log } from '../../platform/log.ts';
import type { SpoolFileSystem } from './spool-file-system.ts';

export interface SpoolReserveOptions {
  /** A directory on the watched disk. */
  readonly directory: string;
  readonly path: string;
  /** Size of the file; 0 for none. */
  readonly fileBytes: number;
  /** Free space below which the disk counts as full. */
  readonly freeBytesMin: number;
  readonly files: SpoolFileSystem;
  readonly log: Log;
}

/** Admission resumes once an eighth more than the threshold is free, so that it does not stop and resume often. */
const RESUME_PART = 8;

export class SpoolReserve {
  private readonly options: SpoolReserveOptions;
  private intact = true;
  private low = false;
  private filling = false;
  /** The reserve was released while it was still being created, so the file is removed when it is finished. */
  private releasedInFilling = false;
  private closed = false;

  constructor(options: SpoolReserveOptions) {
    this.options = options;
    if (options.fileBytes > 0) this.fill();
  }

  /** Whether there is room for more executions. */
  get hasRoom(): boolean {
    return this.intact && !this.low;
  }

  /**
   * Called when the disk is full: deletes the file, so that open executions can be recorded in its room. Returns false
   * if the file was deleted before.
   */
  release(): boolean {
    if (!this.intact) return false;
    const { files, path, log } = this.options;
    this.intact = false;
    this.releasedInFilling = this.filling;
    log.error(
      { path },
      'spool: the disk is full; nothing is admitted until there is room, open executions are recorded in the reserve',
    );
    try {
      files.remove(path);
    } catch (error) {
      log.error({ err: error, path }, 'spool: the reserve could not be given back to the disk');
    }
    return true;
  }

  /** Reads the free space; must be called regularly. */
  check(): void {
    const { files, directory, freeBytesMin, fileBytes, log } = this.options;
    files.freeBytes(directory, (error, bytes) => {
      if (this.closed) return;
      if (error !== null) {
        log.warn({ err: error }, 'spool: free space cannot be read');
        return;
      }
      const wasLow = this.low;
      this.low = bytes < (wasLow ? freeBytesMin + freeBytesMin / RESUME_PART : freeBytesMin);
      if (this.low !== wasLow) {
        if (this.low)
          log.error(
            { freeBytes: bytes, freeBytesMin },
            'spool: the disk is nearly full; nothing is admitted until there is room',
          );
        else log.info({ freeBytes: bytes }, 'spool: there is room on the disk again');
      }
      if (!this.intact && !this.low && bytes >= fileBytes) this.fill();
    });
  }

  close(): void {
    this.closed = true;
    try {
      this.options.files.remove(this.options.path);
    } catch (error) {
      this.options.log.warn({ err: error }, 'spool: the reserve could not be removed');
    }
  }

  private fill(): void {
    if (this.filling) return;
    const { files, path, fileBytes, log } = this.options;
    this.filling = true;
    files.preallocate(path, fileBytes, (error) => {
      this.filling = false;
      if (this.closed || this.releasedInFilling) {
        this.releasedInFilling = false;
        files.remove(path);
        return;
      }
      if (error !== null) {
        log.warn({ err: error, path }, 'spool: the reserve could not be made');
        // The part that was written takes space that records need.
        if (this.intact) this.release();
        else files.remove(path);
        return;
      }
      if (!this.intact) log.info({ path }, 'spool: the reserve is there again; executions are admitted');
      this.intact = true;
    });
  }
}
