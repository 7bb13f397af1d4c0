// The other organizations of an installation, which use a part of the product that the measured one does not.

import { request } from 'node:http';
import type { Product } from '../harness/product.ts';
import { modelOf } from '../harness/proxies.ts';

export const OTHERS = 200;
/** The reply that all other organizations request. */
export const OTHERS_REPLY = 'json/1024';

const keyOf = (part: string, index: number): string => `tg-bench-${part}-${index}-${'k'.repeat(24)}`;

/**
 * The other organizations in the words of the configuration file; `settingsOf` adds settings to an organization's key.
 */
export function otherOrganizations(part: string, settingsOf: (index: number) => string): string {
  return Array.from(
    { length: OTHERS },
    (_, index) => `  - slug: ${part}-${index}
    billing: none
    users: [{ email: ${part}-${index}@bench.test, role: owner }]
    keys: [{ name: bench, user: ${part}-${index}@bench.test, secret: ${keyOf(part, index)} }]
${settingsOf(index)}`,
  ).join('');
}

/** Sends one request of each of the other organizations, one after the other. */
export async function sendAsOthers({ port }: Product, part: string, text: string): Promise<void> {
  for (let index = 0; index < OTHERS; index++) {
    const status = await post(port, keyOf(part, index), text);
    if (status !== 200) throw new Error(`a request of ${part}-${index} is answered with ${status}`);
  }
}

function post(port: number, key: string, content: string): Promise<number> {
  const messages = [{ role: 'user', content }];
  const body = JSON.stringify({ model: modelOf(OTHERS_REPLY), max_tokens: 9, messages });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/v1/chat/completions', method: 'POST', headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.end(body);
  });
}
