// The error for a database call that gave up because something was locked or took too long. Nothing was done, and the
// call can be repeated later.

export class StoreBusy extends Error {
  /** The database's own error code. */
  readonly code: string;

  constructor(code: string, cause: unknown) {
    super('a database call gave up: what it needs is locked, or it took too long', { cause });
    this.name = 'StoreBusy';
    this.code = code;
  }
}
