// A response on node:http. What node:http does otherwise than uWebSockets.js:
// - `write` keeps the memory it is given until the socket has taken it. To a front that memory is lent for the call
// only, and it may be pooled, so each write is a copy.
// - The head is written with the first bytes of the body, when it is known how the body's length is stated.
// - A second request is read while the first one waits for its answer: node-front.ts closes such a connection.
// - The end of a body is reported after its last piece. Here the declared length marks the last piece, so that an
// answer given with that piece leaves the connection to the next request.
// - A client that stands still is waited for without limit: `expectProgress` sets one.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { statusLine } from '../../domain/refusals/status-line.ts';
import type { BodySink } from '../request-body.ts';
import type { HeaderList } from '../response-headers.ts';
import type { ClientResponse, ResponseOwner, Room } from './front.ts';
import type { NodeConnection } from './node-connection.ts';

/** How long a client may send nothing of a body, or take nothing of an ended response, as with uWebSockets.js. */
const IDLE_MS = 10_000;
const NO_BYTES = new Uint8Array(0);
const CLOSE: HeaderList = ['connection', 'close'];
/** node:http throws at other characters. Beyond ASCII a value is written as UTF-8. */
const SENDABLE = /^[\t\x20-\x7e\x80-\u{10ffff}]*$/u;
const ASCII = /^[\t\x20-\x7e]*$/;

export class NodeResponse implements ClientResponse {
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly connection: NodeConnection;
  private owner: ResponseOwner | null = null;
  private isLastOfConnection = false;
  private status = 200;
  /** Names and values, alternating. */
  private readonly headers: string[] = [];
  /** How many bytes of a declared length were written. */
  private writtenBytes = 0;
  /** The whole declared length has been written, and the socket has not taken it yet. */
  private isAllWritten = false;
  private isAwaitingRoom = false;
  /** A body is being passed on, and its last piece has not come. */
  private isBodyOpen = false;

  constructor(request: IncomingMessage, response: ServerResponse, connection: NodeConnection) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    connection.answering = this;
    // Without a socket, the response before this one is still being sent, and its time limit stays.
    if (response.socket === null) this.expectProgress(false);
    // The socket itself tells when the connection is gone.
    response.on('error', NOTHING);
  }

  attach(owner: ResponseOwner, isLastOfConnection: boolean): void {
    this.owner = owner;
    this.isLastOfConnection = isLastOfConnection;
  }

  /** The connection is gone. */
  onClosed(): void {
    this.owner?.onAborted();
  }

  remoteAddress(): Uint8Array {
    return this.connection.address;
  }

  handBodyTo(sink: BodySink, declaredBytes: number | null): void {
    const { request } = this;
    let receivedBytes = 0;
    let hasBegun = false;
    const hand = (bytes: Uint8Array, isLast: boolean): void => {
      hasBegun = true;
      if (isLast) this.isBodyOpen = false;
      this.expectProgress(!isLast);
      sink.take(bytes, isLast);
    };
    this.isBodyOpen = true;
    request.on('data', (bytes: Buffer) => {
      receivedBytes += bytes.length;
      hand(bytes, receivedBytes === declaredBytes);
    });
    request.on('end', () => {
      if (this.isBodyOpen) hand(NO_BYTES, true);
    });
    // Runs after the part that came with the head, which Node passes on in the same queue.
    process.nextTick(() => {
      if (!hasBegun) hand(NO_BYTES, declaredBytes === 0);
    });
  }

  pause(): void {
    this.expectProgress(false);
    this.request.pause();
  }

  resume(): void {
    this.expectProgress(this.isBodyOpen);
    this.request.resume();
  }

  /** Where progress is expected, node:http destroys a socket on which nothing has moved for IDLE_MS. */
  private expectProgress(isExpected: boolean): void {
    this.connection.socket.setTimeout(isExpected ? IDLE_MS : 0);
  }

  cork(write: () => void): void {
    // The socket is corked, not the response: a corked response would send its end before the chunks that it holds.
    const { socket } = this.connection;
    socket.cork();
    try {
      write();
    } finally {
      socket.uncork();
    }
  }

  begin(status: number, own: HeaderList, read: HeaderList, passes: (name: string) => boolean): void {
    this.status = status;
    this.addHeaders(own);
    for (let index = 0; index < read.length; index += 2)
      if (passes(read[index] as string)) this.addHeader(read[index] as string, read[index + 1] as string);
  }

  private addHeaders(headers: HeaderList): void {
    for (let index = 0; index < headers.length; index += 2)
      this.addHeader(headers[index] as string, headers[index + 1] as string);
  }

  private addHeader(name: string, value: string): void {
    if (ASCII.test(value)) this.headers.push(name, value);
    else if (SENDABLE.test(value)) this.headers.push(name, Buffer.from(value, 'utf8').toString('latin1'));
  }

  private writeHead(...more: HeaderList): void {
    if (this.response.headersSent) return;
    this.headers.push(...more);
    this.response.writeHead(this.status, statusLine(this.status).slice('200 '.length), this.headers);
  }

  write(chunk: Uint8Array): boolean {
    this.writeHead(...(this.isLastOfConnection ? CLOSE : []));
    return this.response.write(Buffer.from(chunk));
  }

  writeOfTotal(chunk: Uint8Array, totalBytes: number): Room {
    this.writeHead('content-length', String(totalBytes), ...(this.isLastOfConnection ? CLOSE : []));
    this.writtenBytes += chunk.byteLength;
    const hasRoom = this.response.write(Buffer.from(chunk));
    this.isAllWritten = this.writtenBytes >= totalBytes;
    if (!hasRoom) this.awaitRoom();
    else if (this.isAllWritten) this.finish();
    if (!hasRoom) return 'full';
    return this.isAllWritten ? 'complete' : 'room';
  }

  awaitRoom(): void {
    if (this.isAwaitingRoom) return;
    this.isAwaitingRoom = true;
    this.response.on('drain', () => {
      if (this.owner === null || this.owner.closed) return;
      if (this.isAllWritten) this.finish();
      this.owner.onRoom(this.isAllWritten);
    });
  }

  end(body: Uint8Array | string | undefined, closes: boolean): void {
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    if (!this.response.headersSent) this.writeHead('content-length', String(bytes), ...(closes ? CLOSE : []));
    this.finish(body, closes);
  }

  endWithoutBody(bytes: number | null, closes: boolean): void {
    const length = bytes === null ? [] : ['content-length', String(bytes)];
    this.writeHead(...length, ...(closes ? CLOSE : []));
    this.finish(undefined, closes);
  }

  private finish(body?: Uint8Array | string, closes = false): void {
    const { connection, response } = this;
    connection.answering = null;
    connection.isOver ||= closes || this.isBodyOpen;
    // After a half-read body, its rest could not be told from a next request.
    if (this.isBodyOpen) response.once('finish', () => connection.socket.destroySoon());
    response.end(ownBytes(body));
    if (connection.socket.writableLength > 0) this.expectProgress(true);
  }

  endLast(body: Uint8Array | string | undefined): void {
    // The head says that the connection closes, and node:http closes it when everything is written.
    this.writeHead(...CLOSE);
    this.response.end(ownBytes(body));
    this.expectProgress(true);
  }

  answerBeforeBody(status: number, headers: HeaderList, body: string, isHead: boolean): void {
    this.status = status;
    this.addHeaders(headers);
    this.writeHead('content-length', String(Buffer.byteLength(body)), ...CLOSE);
    // The response is not ended: node:http would then close the connection while the client still sends.
    if (isHead) this.response.flushHeaders();
    else this.response.write(body);
  }

  close(): void {
    this.expectProgress(true);
    // The parser reads the socket itself, so pausing the socket alone would not stop it.
    this.request.pause();
    this.connection.cut();
  }
}

function ownBytes(body: Uint8Array | string | undefined): Buffer | string {
  return body === undefined ? '' : typeof body === 'string' ? body : Buffer.from(body);
}

const NOTHING = (): void => undefined;
