// A database gave up a call because somebody else held what it needed. Nothing was done, and asking again later is
// safe.

export class StoreBusy extends Error {
  /** The database's own code of what happened. */
  readonly code: string;

  constructor(code: string, cause: unknown) {
    super('what was asked of the database is locked by somebody else', { cause });
    this.name = 'StoreBusy';
    this.code = code;
  }
}
