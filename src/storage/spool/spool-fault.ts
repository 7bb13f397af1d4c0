// What the spool throws when it did not take all that it was given.

/** The spool did not take all of a group. */
export class SpoolFault extends Error {
  override readonly name = 'SpoolFault';
  /** Its first frames, which are in the spool all the same. */
  readonly framesWritten: number;
  /** The records in these. */
  recordsWritten = 0;
  constructor(message: string, framesWritten: number, options?: ErrorOptions) {
    super(message, options);
    this.framesWritten = framesWritten;
  }
}
