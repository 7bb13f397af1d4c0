// One client connection of the load generator: sends prepared request bytes, reads replies, measures both against the
// machine's monotonic clock.

import { connect, type Socket } from 'node:net';
import { type ReplyListener, ReplyParser } from './reply-parser.ts';

export interface ConnectionListener extends ReplyListener {
  onOpen(): void;
  onClosed(reason: string): void;
}

/** Every socket reads into this: a read is consumed before the next one starts. */
const sharedReadBuffer = Buffer.allocUnsafe(256 * 1024);

export class Connection {
  private readonly socket: Socket;
  private closed = false;

  constructor(port: number, findEvents: boolean, listener: ConnectionListener) {
    const parser = new ReplyParser(listener, findEvents);
    this.socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: sharedReadBuffer,
        callback: (bytes, buffer) => {
          parser.push((buffer as Buffer).subarray(0, bytes));
          return true;
        },
      },
    });
    this.socket.on('connect', () => listener.onOpen());
    this.socket.on('error', (error) => this.lose(listener, error.message));
    this.socket.on('close', () => this.lose(listener, 'closed by the server'));
  }

  send(request: Buffer): void {
    this.socket.write(request);
  }

  /** Closes from our side; the listener hears nothing more. */
  close(): void {
    this.closed = true;
    this.socket.destroy();
  }

  private lose(listener: ConnectionListener, reason: string): void {
    if (this.closed) return;
    this.closed = true;
    listener.onClosed(reason);
  }
}
