// One POST to an address that a customer chose. It must not reach our own network or its neighbours: the address is
// checked at the socket, when its name has been resolved. Redirects are not followed.

import { lookup as lookupHost } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { isPublicAddress } from './public-address.ts';

export interface PostedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Ends the attempt, whatever it has come to. */
  readonly signal: AbortSignal;
  readonly allowPrivate: boolean;
  /** Of an answer that is longer the request fails; 0: only the status matters. */
  readonly answerBytesMax: number;
}

export interface PostAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export function postRequest(posted: PostedRequest): Promise<PostAnswer> {
  const { url, headers, body, signal, allowPrivate, answerBytesMax } = posted;
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  // An IP address is called directly; only a host name goes through `lookup`.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) return Promise.reject(new Error(notPublic(host)));
  const options: RequestOptions = {
    method: 'POST',
    // Every attempt opens a new connection: a kept one could outlive the meaning of its host name.
    agent: false,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
    signal,
    lookup: allowPrivate ? undefined : lookupPublic,
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
    request.on('error', reject);
    request.end(body);
  });
}

/** Calls exactly the addresses that were checked, so a name that changes a moment later has no effect. */
const lookupPublic: NonNullable<RequestOptions['lookup']> = (hostname, options, callback) => {
  lookupHost(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0);
    const blocked = addresses.find(({ address }) => !isPublicAddress(address));
    const [first] = addresses;
    if (blocked !== undefined || first === undefined) return callback(new Error(notPublic(hostname)), '', 0);
    if (options.all === true) return callback(null, addresses);
    callback(null, first.address, first.family);
  });
};

function notPublic(host: string): string {
  return `${host} is a loopback, private or reserved address`;
}
