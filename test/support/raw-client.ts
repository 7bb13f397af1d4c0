// A client on a connection of its own that a test controls step by step: it writes on demand, and keeps everything it
// has read.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { waitFor } from './waiting.ts';

export class RawClient {
  received = '';
  /** The server has ended the connection, by FIN or RST. */
  isClosed = false;
  private readonly socket: Socket;

  private constructor(socket: Socket) {
    this.socket = socket;
    const onEnd = (): void => {
      this.isClosed = true;
    };
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.received += text;
    });
    socket.on('end', onEnd).on('error', onEnd).on('close', onEnd);
  }

  static async open(port: number, host = '127.0.0.1', localAddress?: string): Promise<RawClient> {
    const socket = connect({ port, host, noDelay: true, ...(localAddress === undefined ? {} : { localAddress }) });
    const client = new RawClient(socket);
    await Promise.race([once(socket, 'connect'), once(socket, 'close').catch(() => undefined)]);
    return client;
  }

  /** Resolves when the kernel has taken all bytes, which does not happen while the server does not read. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  until(what: string, accept: (client: RawClient) => boolean): Promise<RawClient> {
    return waitFor(
      `${what}; received ${this.received.slice(0, 300)}`,
      () => this,
      (client) => accept(client),
    );
  }

  untilClosed(): Promise<RawClient> {
    return this.until('the server to close the connection', ({ isClosed }) => isClosed);
  }

  untilAnswered(): Promise<RawClient> {
    return this.until('an answer', ({ received }) => received.includes('\r\n\r\n'));
  }

  leave(): void {
    this.socket.destroy();
  }
}
