// In which order deployments are asked for what a request lets the provider do, and what only some have a price for.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pricedCallsFirst } from '../../src/generation/catalog/priced-deployments.ts';
import type { Deployment } from '../../src/generation/catalog/serving-catalog.ts';
import type { CallBound } from '../../src/generation/dialects/dialect.ts';
import { priceOf } from '../support/real-bills.ts';

const PLAIN = { input: '1', output: '5' };
const CALLS: readonly CallBound[] = [{ tool: 'web_search', max: null, isOptional: true }];
const BOTH = [...CALLS, { tool: 'x_search', max: 2, isOptional: false }];

/** `plain`, `search`, `both`: what has a price; `none`: nothing has; `own`: a key of the organization's, likewise. */
function deployment(name: string): Pick<Deployment, 'price' | 'ownKey'> & { readonly name: string } {
  const calls = name.startsWith('both')
    ? { web_search: '0.01', x_search: '0.01' }
    : name.startsWith('search')
      ? { web_search: '0.01' }
      : {};
  const price = name.startsWith('none') ? null : priceOf({ ...PLAIN, calls });
  return name.startsWith('own')
    ? { name, price, ownKey: { fee: null } as Deployment['ownKey'] & object }
    : { name, price };
}

describe('who has a price for the tools that a request may call is asked first', () => {
  const ROWS: readonly (readonly [asked: string, calls: readonly CallBound[], order: string])[] = [
    ['plain search', CALLS, 'search plain'],
    ['plain1 search1 none plain2 search2', CALLS, 'search1 search2 plain1 none plain2'],
    ['search both plain', BOTH, 'both search plain'],
    ['plain none', CALLS, 'plain none'],
    ['search1 search2', CALLS, 'search1 search2'],
    ['own1 plain search own2', CALLS, 'own1 search plain own2'],
    ['own1 own2', CALLS, 'own1 own2'],
  ];
  for (const [asked, calls, order] of ROWS) {
    test(`${asked}, of ${calls.length} tools`, () => {
      const found = pricedCallsFirst(asked.split(' ').map(deployment), calls);
      assert.equal(found.map(({ name }) => name).join(' '), order);
    });
  }
});
