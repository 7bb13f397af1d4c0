// Writes one reply to the caller: paced writes, splits inside characters, stalls, cuts and resets; and counts what was
// really handed over.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** How long a caller may read what has arrived before a reset. */
const READING_MS = 50;

export class ReplySocket {
  private readonly response: ServerResponse;
  private readonly splitEachByte: boolean;
  private readonly left: Promise<void>;
  bytesSent = 0;
  status: number | null = null;
  /** The caller disconnected, or the reply was cut: nothing more can be sent. */
  closed = false;

  constructor(response: ServerResponse, options: { splitEachByte: boolean }) {
    this.response = response;
    this.splitEachByte = options.splitEachByte;
    response.on('error', () => undefined);
    this.left = new Promise((resolve) => {
      response.once('close', () => {
        this.closed = true;
        resolve();
      });
    });
  }

  start(status: number, headers: OutgoingHttpHeaders): void {
    if (this.closed) return;
    this.status = status;
    this.response.writeHead(status, headers);
    this.response.flushHeaders();
  }

  /** Resolves when the bytes were handed over or the caller has disconnected. */
  async write(text: string | Uint8Array): Promise<void> {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    if (!this.splitEachByte) return this.writeWhole(bytes);
    for (let index = 0; index < bytes.length && !this.closed; index += 1) {
      await this.writeWhole(bytes.subarray(index, index + 1));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  private async writeWhole(bytes: Uint8Array): Promise<void> {
    if (this.closed) return;
    this.bytesSent += bytes.length;
    if (this.response.write(bytes)) return;
    await Promise.race([new Promise<void>((resolve) => this.response.once('drain', resolve)), this.left]);
  }

  /** Ends the reply properly; true when all of it was handed to the operating system. */
  async end(): Promise<boolean> {
    if (this.closed) return false;
    const finished = new Promise<boolean>((resolve) => this.response.end(() => resolve(true)));
    return Promise.race([finished, this.left.then(() => this.response.writableFinished)]);
  }

  /** Waits, but not longer than the caller stays. */
  async pause(ms: number): Promise<void> {
    if (ms <= 0 || this.closed) return;
    let timer: NodeJS.Timeout | undefined;
    const elapsed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([elapsed, this.left]);
    clearTimeout(timer);
  }

  /** Sends nothing more until the caller disconnects. */
  async stall(): Promise<void> {
    if (!this.closed) await this.left;
  }

  /** Closes the connection in the middle of a reply: with FIN, or with RST if `reset`. */
  async cut(options: { reset: boolean }): Promise<void> {
    // What was written before the cut should arrive, so the socket gets one tick to send it. A reset also discards what
    // the caller has not read yet.
    await new Promise((resolve) => setImmediate(resolve));
    if (options.reset && this.status !== null) await this.pause(READING_MS);
    if (options.reset) this.response.socket?.resetAndDestroy();
    else this.response.destroy();
    await this.left;
  }
}
