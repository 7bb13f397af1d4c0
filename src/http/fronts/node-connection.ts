// A connection of the front on node:http: whose turn it is on it, and who is told when it is gone.

import { isIPv4, type Socket } from 'node:net';

/** Who answers the request that has come last. */
interface Answering {
  onClosed(): void;
}

export class NodeConnection {
  /** Four bytes, or sixteen. */
  readonly address: Uint8Array;
  /** Who has not ended its response yet; null: the next request may come. */
  answering: Answering | null = null;
  /** What comes is no request any more: the last response has been ended, or the connection is gone. */
  isOver = false;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    this.address = addressOf(socket);
    // Whatever destroys the socket: it says so itself only when its descriptor is closed, which is behind the end of
    // the tick. Whoever has just waited for a look-up has not asked a provider by then (platform/event-loop/tick.ts).
    const destroy = socket.destroy.bind(socket);
    socket.destroy = (error) => {
      destroy(error);
      this.tellClosed();
      return socket;
    };
  }

  /** Ends it behind what it has taken. Who answers is told at once, and nothing is read any more. */
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

/** Sixteen bits each; the last two may be written as an IPv4 address. */
function groupsOf(text: string): readonly number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
