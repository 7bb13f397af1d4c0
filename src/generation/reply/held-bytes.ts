// The last bytes of a stream, kept from the client until the end they show is recorded.

/**
 * A terminal event longer than this goes out but for its newest chunk, which is behind all the client has: what is held
 * stays small.
 */
const HELD_BYTES_MAX = 1_048_576;

export class HeldBytes {
  #chunks: Buffer[] = [];
  #bytes = 0;

  hold(chunk: Buffer, client: ClientSide): void {
    if (this.#bytes + chunk.length > HELD_BYTES_MAX) this.release(client);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  release(client: ClientSide): void {
    if (this.#bytes === 0) return;
    for (const chunk of this.#chunks) client.push(chunk);
    this.#chunks = [];
    this.#bytes = 0;
  }
}

export interface ClientSide {
  push(chunk: Buffer): void;
}
