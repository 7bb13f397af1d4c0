// One attempt to deliver a message: a POST to an address that a customer chose. It must not reach our own network or
// its neighbours.

import { lookup as lookupHost } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { webhookUrlProblem } from '../../src/domain/webhooks/webhook-url.ts';
import { isPublicAddress } from '../../src/platform/public-address.ts';

export interface WebhookTargets {
  readonly allowHttp: boolean;
  readonly allowPrivate: boolean;
}

export interface WebhookMessage {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const ANSWER_LIMIT_MS = 10_000;
const ERROR_LENGTH_MAX = 300;

/** null: the receiver answered 2xx; otherwise the error. Redirects are not followed. */
export async function sendWebhook(message: WebhookMessage, targets: WebhookTargets): Promise<string | null> {
  const problem = webhookUrlProblem(message.url, targets);
  if (problem !== null) return `the address ${problem}`;
  try {
    const status = await post(message, targets);
    return status >= 200 && status < 300 ? null : `answered ${status}`;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).slice(0, ERROR_LENGTH_MAX);
  }
}

function post({ url, headers, body }: WebhookMessage, { allowPrivate }: WebhookTargets): Promise<number> {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  // An IP address is called directly; only a host name goes through `lookup`.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) return Promise.reject(new Error(notPublic(host)));
  const content = Buffer.from(body);
  const options: RequestOptions = {
    method: 'POST',
    // Every attempt opens a new connection: a kept one could outlive the meaning of its host name.
    agent: false,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': content.length,
      'user-agent': 'tollgate-webhooks',
    },
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    lookup: allowPrivate ? undefined : lookupPublic,
  };
  return new Promise((resolve, reject) => {
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)(url, options, (response) => {
      // Only the status of the answer matters.
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end(content);
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
