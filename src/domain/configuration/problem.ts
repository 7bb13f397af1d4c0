// A mistake in a configuration file, and its place.

export type Place = readonly (string | number)[];

export interface Problem {
  readonly place: Place;
  readonly message: string;
  /** The mistake is a reference to a name that was not found. */
  readonly isDangling?: true;
}
