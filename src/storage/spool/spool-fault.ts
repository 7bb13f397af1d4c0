// The error that the spool throws when it could not write a whole batch.

/** The spool could not write all frames of a batch. */
export class SpoolFault extends Error {
  override readonly name = 'SpoolFault';
  /** How many of the first frames were written. */
  readonly framesWritten: number;
  /** How many records those frames contain. */
  recordsWritten = 0;
  constructor(message: string, framesWritten: number, options?: ErrorOptions) {
    super(message, options);
    this.framesWritten = framesWritten;
  }
}
