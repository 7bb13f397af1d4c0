// The interface of code that is told when the client of an exchange leaves.

export interface ClientWatch {
  /** The client left before its response was complete. */
  onClientLeft(): void;
}
