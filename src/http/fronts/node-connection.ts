// A connection of the front on node:http: which response is being written on it, and who is told when it is gone.

import { isIPv4, type Socket } from 'node:net';

/** The response to the last request that has come. */
interface Answering {
  onClosed(): void;
}

export class NodeConnection {
  /** Four bytes, or sixteen. */
  readonly address: Uint8Array;
  /** The response that has not ended yet; null: the next request may come. */
  answering: Answering | null = null;
  /** No more requests are accepted: the last response has been ended, or the connection is gone. */
  isOver = false;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    this.address = addressOf(socket);
    // Every `destroy` tells the response at once, because the socket's `close` event comes only after the end of the
    // tick. A request that has just waited for a look-up thus learns that its client has left before it calls a
    // provider (platform/event-loop/tick.ts).
    const destroy = socket.destroy.bind(socket);
    socket.destroy = (error) => {
      destroy(error);
      this.tellClosed();
      return socket;
    };
  }

  /**
   * Closes the connection when it has sent what it has taken. The response is told at once, and nothing more is read.
   */
  cut(): void {
    if (this.socket.writableLength === 0) return void this.socket.destroy();
    this.socket.destroySoon();
    this.socket.pause();
    this.tellClosed();
  }

  private tellClosed(): void {
    const { answering } = this;
    this.isOver = true;
    this.answering = null;
    answering?.onClosed();
  }
}

/** Four bytes, or sixteen. */
function addressOf({ remoteAddress = '' }: Socket): Uint8Array {
  if (isIPv4(remoteAddress)) return Uint8Array.from(remoteAddress.split('.'), Number);
  const [before = '', behind = ''] = remoteAddress.replace(/%.*$/, '').split('::');
  const [first, last] = [groupsOf(before), groupsOf(behind)];
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => 0);
  const all = remoteAddress.includes('::') ? [...first, ...zeros, ...last] : first;
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

/** The groups of an IPv6 address, of sixteen bits each; the last two may be written as an IPv4 address. */
function groupsOf(text: string): readonly number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
