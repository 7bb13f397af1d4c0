// Something wrong with a configuration file, and the place in it.

export type Place = readonly (string | number)[];

export interface Problem {
  readonly place: Place;
  readonly message: string;
  /** It refers to something that is not known where it was looked for. */
  readonly isDangling?: true;
}
