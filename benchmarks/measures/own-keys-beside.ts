// P18: CPU per request of an organization without own provider keys, on an installation where many others have some and
// send requests with them, over the same on one where nobody has any.

import { request } from 'node:http';
import { OWN_CLIENT, type Product, startProduct } from '../harness/product.ts';
import { modelOf } from '../harness/proxies.ts';
import { comparePair } from './compare-pair.ts';
import type { Measure, Row } from './measure.ts';

const REPLY = 'json/1024';
const KIND = REPLY.replaceAll('/', '-');
const ORGANIZATIONS = 200;
const SIZES = ['1k', '16k'] as const;
const keyOf = (index: number): string => `tg-bench-own-${index}-${'k'.repeat(24)}`;

export const ownKeysBeside: Measure = {
  ids: ['P18'],
  async run(run) {
    if (run.product === null) return [];
    const plain = await startProduct(run.direct.port, undefined, null, { ...OWN_CLIENT, name: 'without' });
    const beside = await startProduct(run.direct.port, undefined, null, {
      ...OWN_CLIENT,
      name: 'beside',
      otherOrganizations: organizations(),
    });
    if (plain === null || beside === null) return [];
    try {
      await Promise.all([plain.suspendJobs(), beside.suspendJobs()]);
      const rows: Row[] = [];
      const what = (size: string): string =>
        `CPU of a ${size} request without own keys, beside ${ORGANIZATIONS} organizations with some, over alone`;
      // The gateway holds keys, connections and what it remembers of every one of these organizations.
      const use = (): Promise<void> => sendOwn(beside);
      for (const size of SIZES) rows.push(await comparePair(run, [plain, beside], { size, what: what(size), use }));
      return rows;
    } finally {
      await Promise.all([plain.stop(), beside.stop()]);
    }
  },
};

function organizations(): string {
  return Array.from(
    { length: ORGANIZATIONS },
    (_, index) => `  - slug: own-${index}
    billing: none
    users: [{ email: own-${index}@bench.test, role: owner }]
    keys: [{ name: bench, user: own-${index}@bench.test, secret: ${keyOf(index)} }]
    byok: { enabled: true }
    provider_credentials: [{ kind: ${KIND}, name: ours, secret: sk-own-${index}-0123456789 }]
`,
  ).join('');
}

/** One request of each organization with a key of its own. */
async function sendOwn({ port }: Product): Promise<void> {
  for (let index = 0; index < ORGANIZATIONS; index++) {
    const status = await post(port, keyOf(index));
    if (status !== 200) throw new Error(`a request on an own key is answered with ${status}`);
  }
}

function post(port: number, key: string): Promise<number> {
  const body = JSON.stringify({ model: modelOf(REPLY), max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
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
