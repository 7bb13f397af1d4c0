// Who wants to know that the client of an exchange has left.

export interface ClientWatch {
  /** The client left before its response was complete. */
  onClientLeft(): void;
}
