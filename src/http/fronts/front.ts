// The interface of a front: it listens, reads requests from its connections, finds the handler of each request, and
// gives it the request's head and the means to answer.

import type { BodySource } from '../request-body.ts';
import type { HeaderList } from '../response-headers.ts';

/** The head of a request. It may be used only until the handler returns. */
export interface ClientRequest {
  /** In lower case. */
  getMethod(): string;
  /** The path as sent. */
  getUrl(): string;
  /** The query string without its question mark; undefined: there is none. */
  getQuery(): string | undefined;
  /** A parameter of the path as sent, by its place among them. */
  getParameter(index: number): string | undefined;
  /** Every header line in its order, also repeated ones; the name in lower case. */
  forEach(take: (name: string, value: string) => void): void;
}

/** Answers a request, and is told what happens to its connection. */
export interface ResponseOwner {
  /** The response is handed over whole, or cut: nothing of it is written any more. */
  readonly closed: boolean;
  /** The connection is gone before the response was ended. */
  onAborted(): void;
  /** There is room again after a write that found none. `isComplete`: the whole declared length has been taken. */
  onRoom(isComplete: boolean): void;
}

/** `complete`: the last byte of the declared length is taken. `full`: the owner is told when there is room again. */
export type Room = 'complete' | 'room' | 'full';

/**
 * The response to one request. Bytes that it is given belong to the caller again when the call returns. After an abort,
 * an end or `close` it must not be touched, but for `close`.
 */
export interface ClientResponse extends BodySource {
  /**
   * To be called once, before the handler returns. `isLastOfConnection`: nothing that follows the request on its
   * connection may become another one.
   */
  attach(owner: ResponseOwner, isLastOfConnection: boolean): void;
  /** Four bytes, or sixteen. */
  remoteAddress(): Uint8Array;
  /** Runs `write` with all its writes gathered into as few packets as possible. */
  cork(write: () => void): void;
  /**
   * Status and headers. Values of `own` with a control character are left out. `read`: headers that were read strictly;
   * those that `passes` allows are written. This method and all below must be called inside `cork`.
   */
  begin(status: number, own: HeaderList, read: HeaderList, passes: (name: string) => boolean): void;
  /** Body bytes with chunked framing; false: `awaitRoom` tells when to go on. */
  write(chunk: Uint8Array): boolean;
  /** Body bytes of a response whose whole length is declared. */
  writeOfTotal(chunk: Uint8Array, totalBytes: number): Room;
  /** Asks for a call of the owner's `onRoom` when there is room, or when the last byte has been taken. */
  awaitRoom(): void;
  /**
   * Ends a response that `write` has begun, or else writes a whole one with its length; `closes`: the whole one ends
   * the connection.
   */
  end(body: Uint8Array | string | undefined, closes: boolean): void;
  /** Writes a head that states this length of a body that does not follow; null: it states none. */
  endWithoutBody(bytes: number | null, closes: boolean): void;
  /**
   * Ends the last response of a connection: one that `write` has begun, or a head without a body. `onAborted` tells the
   * owner when the connection closes.
   */
  endLast(body: Uint8Array | string | undefined): void;
  /**
   * Writes a whole answer to a request whose body is still coming in. The connection stays open until `close`, or until
   * the client ends it (`onAborted`), so that the client can read the answer. What comes on it reaches no handler.
   */
  answerBeforeBody(status: number, headers: HeaderList, body: string, isHead: boolean): void;
  /** Cuts the connection. */
  close(): void;
}

export type RequestHandler = (response: ClientResponse, request: ClientRequest) => void;

/** Told of every connection. */
export interface ConnectionWatch {
  /** Returns whether the connection is kept. `address`: four bytes, or sixteen. */
  onOpened(address: Uint8Array): boolean;
  onClosed(): void;
}

/** Methods that a front tells apart; `any`: all that no other handler of the path has. */
export type FrontMethod = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options' | 'any';

/** Handlers and the watch are given before `listen`. */
export interface Front {
  /**
   * `pattern`: literal segments, `:name`, and at its end `*`. A literal segment goes before a name, a name before `*`.
   */
  handle(method: FrontMethod, pattern: string, handler: RequestHandler): void;
  watchConnections(watch: ConnectionWatch): void;
  /** Rejects where the port cannot be opened. Several processes of one machine may share it. */
  listen(host: string, port: number): Promise<void>;
  /** No new connection is accepted; those that are open stay. */
  stopListening(): void;
  /** Closes every connection. */
  close(): void;
}
