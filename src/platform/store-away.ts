// The error for a database call that was not answered: the database is stopped, is starting, is a standby, or lets
// nobody in. The call can be repeated later, unless nobody knows whether its change was made.

export class StoreAway extends Error {
  /** The database's or the system's own error code; absent: the driver gave none. */
  readonly code?: string;

  /** The message is the driver's own, for logs and for people who run a command. */
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'StoreAway';
    if ('code' in cause) this.code = String(cause.code);
  }
}

/** The connection ended at a commit: the change may have been made, and must not be repeated without looking. */
export class CommitUnanswered extends StoreAway {}
