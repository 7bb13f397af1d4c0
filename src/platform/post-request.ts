// One POST to an address that a customer chose. It must not reach our own network or its neighbours: the address is
// checked at the socket, when its name has been resolved. Redirects are not followed.

import { lookup as lookupHost } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { EgressGuard } from './egress-guard.ts';

const DEFAULT_PORTS = { 'https:': 443, 'http:': 80 } as const;

export interface PostedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Ends the attempt, whatever it has come to. */
  readonly signal: AbortSignal;
  /** By which addresses are called. */
  readonly guard: EgressGuard;
  /** Of an answer that is longer the request fails; 0: only the status matters. */
  readonly answerBytesMax: number;
}

export interface PostAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export function postRequest(posted: PostedRequest): Promise<PostAnswer> {
  const { url, headers, body, signal, guard, answerBytesMax } = posted;
  const { protocol, hostname, port: given } = new URL(url);
  const port = given === '' ? DEFAULT_PORTS[protocol === 'https:' ? 'https:' : 'http:'] : Number(given);
  // An IP address is called directly; only a host name goes through `lookup`.
  const refusal = guard.refusalOfHost(hostname.replace(/^\[|\]$/g, ''), port);
  if (refusal !== null) return Promise.reject(refusal);
  const options: RequestOptions = {
    method: 'POST',
    // Every attempt opens a new connection: a kept one could outlive the meaning of its host name.
    agent: false,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
    signal,
    lookup: guard.lookup(lookupHost as LookupFunction, port),
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
