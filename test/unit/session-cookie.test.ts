// The cookie of a console's session is looked for where the console's own page asks, and nowhere else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SessionCookie } from '../../src/control-plane/console/session-cookie.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { OWN_PAGE } from '../support/console-session.ts';

const SECRET = `tgs-${'x'.repeat(43)}`;

test('cookies of a request that no page of the console made are not read', () => {
  let reads = 0;
  const cookie = new SessionCookie('https://gate.test');
  const read = (headers: Readonly<Record<string, string>>): string | null =>
    cookie.read({
      header: (name: string) => headers[name] ?? null,
      headerValues: () => {
        reads += 1;
        return [`a=1; ${cookie.name}=${SECRET}`];
      },
    } as unknown as Exchange);
  assert.equal(read({}), null);
  assert.equal(read({ ...OWN_PAGE, 'sec-fetch-site': 'cross-site' }), null);
  assert.equal(reads, 0);
  assert.equal(read(OWN_PAGE), SECRET);
  assert.equal(reads, 1);
});
