// A response on uWebSockets.js; what that library asks of its callers is kept here once:
// - `HttpRequest` dies when the route handler returns.
// - `onAborted` must be attached before the handler returns; after an abort the response must not be touched.
// - an `onData` chunk is emptied when the callback returns: a sink of the body copies what it keeps.
// - writes outside a uWS callback go through `cork`, or each costs a packet and a syscall.
// - `write` returning false means: stop reading the source until `onWritable`; uWS buffers without limit otherwise.
// - `pause` stops reading the socket, but not a loop of reads that is under way. The loop goes on while each read fills
// half a megabyte, which receive-buffer.ts prevents. During a pause, nobody notices that the client leaves.
// - After `end` the response must not be touched, so an answer after which the connection is still read is written
// without `end`.

import { statusLine } from '../../domain/refusals/status-line.ts';
import type { BodySink } from '../request-body.ts';
import { type HeaderList, mayStandInHeader } from '../response-headers.ts';
import type { ClientResponse, ResponseOwner, Room } from './front.ts';
import type { HttpResponse } from './load-uws.ts';
import { answerText, withHeader } from './uws-head-text.ts';

export class UwsResponse implements ClientResponse {
  private readonly native: HttpResponse;
  private owner: ResponseOwner | null = null;
  private isLastOfConnection = false;
  /** A part of the body has been written. */
  private hasBegunBody = false;
  private isAwaitingRoom = false;
  /** What the socket has not taken yet of a response whose length is declared. */
  private unsent: { readonly bytes: Uint8Array; readonly totalBytes: number } | null = null;

  constructor(native: HttpResponse) {
    this.native = native;
  }

  attach(owner: ResponseOwner, isLastOfConnection: boolean): void {
    this.owner = owner;
    this.isLastOfConnection = isLastOfConnection;
    this.native.onAborted(() => owner.onAborted());
  }

  remoteAddress(): Uint8Array {
    return new Uint8Array(this.native.getRemoteAddress());
  }

  handBodyTo(sink: BodySink): void {
    this.native.onData((chunk, isLast) => sink.take(new Uint8Array(chunk), isLast));
  }

  pause(): void {
    this.native.pause();
  }

  resume(): void {
    this.native.resume();
  }

  cork(write: () => void): void {
    this.native.cork(write);
  }

  begin(status: number, own: HeaderList, read: HeaderList, passes: (name: string) => boolean): void {
    // uWebSockets.js writes `200 OK` by itself.
    if (status !== 200) this.native.writeStatus(statusLine(status));
    // uWebSockets.js writes name and value as they are. All lines are passed as the value of the first name, since a
    // call into it costs more than a line.
    let first: string | null = null;
    let lines: string | null = null;
    for (let index = 0; index < own.length; index += 2) {
      const name = own[index] as string;
      const value = own[index + 1] as string;
      // uWebSockets.js does not check values, so response splitting is prevented here.
      if (!mayStandInHeader(value)) continue;
      first ??= name;
      lines = withHeader(lines, name, value);
    }
    for (let index = 0; index < read.length; index += 2) {
      const name = read[index] as string;
      if (!passes(name)) continue;
      first ??= name;
      lines = withHeader(lines, name, read[index + 1] as string);
    }
    if (first !== null && lines !== null) this.native.writeHeader(first, lines);
  }

  write(chunk: Uint8Array): boolean {
    if (this.isLastOfConnection && !this.hasBegunBody) this.native.writeHeader('connection', 'close');
    this.hasBegunBody = true;
    return this.native.write(chunk);
  }

  writeOfTotal(chunk: Uint8Array, totalBytes: number): Room {
    // After a response with a length, uWebSockets.js would keep the connection.
    if (this.isLastOfConnection) return this.write(chunk) ? 'room' : 'full';
    this.hasBegunBody = true;
    const room = this.tryEnd(chunk, totalBytes);
    if (room === 'full') this.awaitRoom();
    return room;
  }

  /** uWebSockets.js does not keep what the socket did not take: it is sent when the socket drains. */
  private tryEnd(bytes: Uint8Array, totalBytes: number): Room {
    const offset = this.native.getWriteOffset();
    const [taken, complete] = this.native.tryEnd(bytes, totalBytes);
    if (complete) return 'complete';
    this.unsent = taken ? null : { bytes: bytes.subarray(this.native.getWriteOffset() - offset), totalBytes };
    return taken ? 'room' : 'full';
  }

  awaitRoom(): void {
    if (this.isAwaitingRoom) return;
    this.isAwaitingRoom = true;
    this.native.onWritable(() => {
      const { owner, unsent } = this;
      if (owner === null || owner.closed) return true;
      const room = unsent === null ? 'room' : this.tryEnd(unsent.bytes, unsent.totalBytes);
      if (room === 'full') return false;
      // After an `onWritable` handler, uWebSockets.js sends what it has buffered only at the next write.
      if (room === 'room') this.native.cork(NOTHING_MORE);
      owner.onRoom(room === 'complete');
      return true;
    });
  }

  end(body: Uint8Array | string | undefined, closes: boolean): void {
    // After chunks, uWebSockets.js would write the header into the body.
    this.native.end(body, closes && !this.hasBegunBody);
  }

  endWithoutBody(bytes: number | null, closes: boolean): void {
    // The client closes the connection: uWebSockets.js does so only after a body.
    if (closes) this.native.writeHeader('connection', 'close');
    if (bytes !== null) this.native.writeHeader('content-length', String(bytes));
    this.native.endWithoutBody();
  }

  /**
   * Once a response has ended, uWebSockets.js would take what follows for a next request. So the response stays
   * pending, and its last chunk is written by hand, as a header: a trailer takes up the `: ` between the header's name
   * and its value. Without a body, the end of the head is written by hand.
   */
  endLast(body: Uint8Array | string | undefined): void {
    if (body !== undefined && body.length > 0) this.write(Buffer.from(body));
    if (this.hasBegunBody) this.native.writeHeader('\r\n0\r\nx-complete', 'true\r\n');
    else this.native.writeHeader('connection', 'close\r\n');
  }

  /**
   * To uWebSockets.js the response is pending all the time: whatever it takes for a next request on this connection
   * makes it close the connection and reaches no handler.
   */
  answerBeforeBody(status: number, headers: HeaderList, body: string, isHead: boolean): void {
    this.native.writeStatus(statusLine(status)).writeHeader('connection', answerText(headers, body, isHead));
  }

  close(): void {
    this.native.close();
  }
}

const NOTHING_MORE = (): void => undefined;
