// Makes one POST to an address that a customer chose. It must not reach our own network or its neighbours, so the
// address is checked when its name has been resolved, and again at the socket. Redirects are not followed.

import { lookup as lookupHost } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { type EgressGuard, EgressRefused } from './egress-guard.ts';
import { resolveByDns } from './resolve-name.ts';

const DEFAULT_PORTS = { 'https:': 443, 'http:': 80 } as const;

/**
 * The system's resolver runs in libuv's few threads, which also read and sync the spool: a name server that hangs would
 * hold them. Where private addresses may be called, names are looked up by the system all the same, as the operator's
 * own.
 */
const resolveCustomerName = resolveByDns();
/** The guard asks for all addresses of a name. */
const lookupByDns: LookupFunction = (host, options, callback) =>
  resolveCustomerName(host, options, callback as unknown as Parameters<typeof resolveCustomerName>[2]);

export interface PostedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Ends the attempt at any stage. */
  readonly signal: AbortSignal;
  /** Decides which addresses may be called. */
  readonly guard: EgressGuard;
  /** The request fails if the answer is longer; 0: only the status matters. */
  readonly answerBytesMax: number;
}

export interface PostAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export function postRequest(posted: PostedRequest): Promise<PostAnswer> {
  const { url, headers, body, signal, guard, answerBytesMax } = posted;
  const { protocol, port: given } = new URL(url);
  const port = given === '' ? DEFAULT_PORTS[protocol === 'https:' ? 'https:' : 'http:'] : Number(given);
  // An IP address is called directly; only a host name goes through `lookup`.
  if (guard.problemOf(url) !== null) return Promise.reject(new EgressRefused());
  const options: RequestOptions = {
    method: 'POST',
    // Every attempt opens a new connection: a kept one could outlive the meaning of its host name.
    agent: false,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
    signal,
    lookup: guard.lookup(guard.allowsPrivate ? (lookupHost as LookupFunction) : lookupByDns, port),
  };
  return new Promise((resolve, reject) => {
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)(url, options, (response) => {
      const status = response.statusCode ?? 0;
      if (answerBytesMax === 0) {
        response.destroy();
        return resolve({ status, body: Buffer.alloc(0) });
      }
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) response.destroy(new Error(`answered more than ${answerBytesMax} bytes`));
        else chunks.push(chunk);
      });
      response.on('end', () => resolve({ status, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    request.on('socket', (socket) => guard.watch(socket, port));
    request.on('error', reject);
    request.end(body);
  });
}
