// While a change of guardrail policies is known and cannot be loaded: what an organization chose happens to its own
// rules, and the platform's screen whatever it chose (spec 7.7).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { GuardrailTable } from '../../src/domain/guardrails/guardrail-table.ts';
import type { OnFailure } from '../../src/domain/guardrails/policy.ts';
import { HeldGuardrails } from '../../src/gateway/generation/held-guardrails.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { callRoute } from '../support/generation-routes.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { PlaneInProcess } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { silentLog } from '../support/silent-log.ts';
import { waitFor } from '../support/waiting.ts';

const CARD = 'Pay with 4111 1111 1111 1111.';
const EMAIL = 'Write to ada@example.com.';
/** Organizations by what they chose; those of the last letter have a policy that the platform has assigned to them. */
const CHOICES: Readonly<Record<string, OnFailure>> = { refuses: 'refuse', passes: 'pass', given: 'pass' };

const block = (id: string, entity: 'card' | 'email' | 'iban', stages: readonly ('input' | 'output')[]) =>
  policyOf([ruleOf({ policy: id, id, action: 'block', detect: [entity], stages })], { id, name: id });

function tableOf(withFloor: boolean): GuardrailTable {
  const floor = withFloor ? [block('no-cards', 'card', ['input'])] : [];
  const own = block('no-emails', 'email', ['input']);
  const assigned = block('no-ibans', 'iban', ['input']);
  const assignmentOf = (policyId: string, setBy: 'organization' | 'platform') =>
    ({ policyId, teamId: null, keyId: null, setBy }) as const;
  const organizations = Object.entries(CHOICES).map(
    ([id, onUnavailable]) =>
      [
        id,
        {
          onUnavailable,
          exceptedTeams: new Set<string>(),
          exceptedKeys: new Set<string>(),
          assignments: [
            assignmentOf('no-emails', 'organization'),
            ...(id === 'given' ? [assignmentOf('no-ibans', 'platform')] : []),
          ],
        },
      ] as const,
  );
  const policies = new Map([...floor, own, assigned].map((policy) => [policy.id, policy]));
  return { policies, floor, organizations: new Map(organizations) };
}

/** With a change of each organization that could not be loaded. */
async function heldWithout(changes: readonly (string | null)[], table: GuardrailTable): Promise<HeldGuardrails> {
  let loads = 0;
  const load = async (): Promise<GuardrailTable> => {
    loads += 1;
    if (loads === 1) return table;
    throw new Error('Postgres is away');
  };
  const held = await HeldGuardrails.load({ load, pepper: Buffer.alloc(32), log: silentLog });
  for (const organizationId of changes) held.changed(organizationId);
  await waitFor(
    'the changes to be loaded in vain',
    () => changes.every((id) => isUnavailable(held, id ?? 'passes')),
    (areAll) => areAll,
  );
  return held;
}

function isUnavailable(held: HeldGuardrails, organizationId: string): boolean {
  const found = held.ofOrganization(organizationId, 'chat_completions');
  return found !== null && 'unavailable' in found;
}

let upstream: FakeUpstream;
const held: HeldGuardrails[] = [];
const planes: PlaneInProcess[] = [];
before(async () => {
  upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
});
after(async () => {
  for (const plane of planes) await plane.stop();
  for (const one of held) one.close();
  await upstream?.close();
});

async function planeWith(policies: HeldGuardrails): Promise<PlaneInProcess> {
  const principals = new Map(Object.keys(CHOICES).map((id) => [id, principalOf(id)]));
  const plane = await PlaneInProcess.start({ providerUrl: upstream.url, principals, policies });
  held.push(policies);
  planes.push(plane);
  return plane;
}

function ask(plane: PlaneInProcess, key: string, content: string) {
  const body = JSON.stringify({ model: 'sim/small', max_tokens: 10, messages: [{ role: 'user', content }] });
  return callRoute(`${plane.url}/v1/chat/completions`, { key, body });
}

test('the platform’s policies screen also whom its own choice lets pass', async () => {
  const plane = await planeWith(await heldWithout(Object.keys(CHOICES), tableOf(true)));
  const codeOf = async (key: string, content: string) => {
    const reply = await ask(plane, key, content);
    return reply.status === 200 ? 'passes' : JSON.parse(reply.body.toString()).error.code;
  };
  assert.equal(await codeOf('refuses', 'Hello'), 'guardrail_unavailable');
  assert.equal(upstream.requests.length, 0);
  assert.equal(await codeOf('passes', CARD), 'guardrail_blocked');
  assert.equal(await codeOf('given', CARD), 'guardrail_blocked');
  assert.equal(await codeOf('given', 'To GB82 WEST 1234 5698 7654 32.'), 'guardrail_blocked');
  assert.equal(upstream.requests.length, 0);
  assert.equal(await codeOf('passes', EMAIL), 'passes', 'its own rule is not known');
  assert.equal(await codeOf('passes', 'To GB82 WEST 1234 5698 7654 32.'), 'passes', 'that is nobody’s rule for it');
});

test('what was not looked for is said, and not that nothing was found', async () => {
  for (const withFloor of [true, false]) {
    const plane = await planeWith(await heldWithout(['passes', null], tableOf(withFloor)));
    const reply = await ask(plane, 'passes', 'Hello');
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['x-service-guardrail'], undefined);
    await waitFor(
      'its record',
      () => plane.ends.length,
      (count) => count === 1,
    );
    assert.deepEqual(plane.ends[0]?.screening?.input, { action: 'none', not_scanned: ['policy'] });
  }
});
