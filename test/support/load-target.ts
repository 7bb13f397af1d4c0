// A server for load tests: answers each request after a time that the test chooses, and records how long each one took.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LoadTarget {
  readonly url: string;
  /** Milliseconds of each request from its head to the end of its reply, as the server saw them. */
  readonly tookMs: readonly number[];
  /** Requests whose head has been read. */
  readonly seen: readonly IncomingMessage[];
  close(): Promise<void>;
}

export type Answer = (request: IncomingMessage, reply: ServerResponse, index: number) => void;

export async function startLoadTarget(answer: Answer): Promise<LoadTarget> {
  const tookMs: number[] = [];
  const seen: IncomingMessage[] = [];
  const server = createServer((request, reply) => {
    const sinceMs = performance.now();
    reply.once('finish', () => tookMs.push(performance.now() - sinceMs));
    seen.push(request);
    request.resume();
    answer(request, reply, seen.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tookMs,
    seen,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
