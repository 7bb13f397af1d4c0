// Requests of the control plane are bounded: every list and record in their schemas has a maximum, which is checked
// before any item, and the check ends at the first mistake.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DocumentSchemas, type Json } from '../../src/control-plane/openapi/document-schemas.ts';
import { checkAgainst } from '../../src/domain/refusals/check-against.ts';
import { nameOf, routeTable } from '../support/route-table.ts';

/** Operations of the control plane. Bodies of generation requests have their own scanners. */
const operations = routeTable().filter(({ plane }) => plane !== 'data');
const OWN_POLICY = 'PUT /v1/admin/active-org/guardrails/policies/:policyName';

describe('the schemas of requests', () => {
  test('give every list and record a maximum', () => {
    const unbounded = operations.flatMap((route) =>
      unboundedIn(route.description.body).map((place) => `${nameOf(route)} ${place}`),
    );
    assert.deepEqual(unbounded, []);
  });

  test('look at no item of a list or record that has too many', () => {
    const many = counted(Array.from({ length: 100_000 }, () => ({})));
    const named = counted(Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`a${at}`, {}])));
    const ruleWith = (fields: object) => ({ id: 'r', stage: 'input', action: 'flag', ...fields });
    const tooMany: [string, object, string][] = [
      [OWN_POLICY, { rules: many.value }, 'rules'],
      [OWN_POLICY, { rules: [ruleWith({ patterns: many.value })] }, 'rules.0.patterns'],
      [OWN_POLICY, { rules: [ruleWith({ detect: many.value })] }, 'rules.0.detect'],
      [OWN_POLICY, { rules: [ruleWith({ words: ['ab'] })], external: named.value }, 'external'],
      ['PUT /v1/admin/active-org/guardrails/assignments', { teams: named.value }, 'teams'],
      ['POST /v1/admin/active-org/keys', { name: 'x', allowed_models: many.value }, 'allowed_models'],
      ['PUT /v1/admin/active-org/model-prices/:modelName', { tiers: many.value }, 'tiers'],
      ['PUT /v1/admin/active-org/model-prices/:modelName', { calls: named.value }, 'calls'],
    ];
    for (const [name, body, field] of tooMany) {
      const checked = checkBody(name, body);
      assert.equal('kind' in checked && checked.kind === 'invalid_field' && checked.field, field, name);
      assert.match('reason' in checked ? String(checked.reason) : '', /at most/, field);
    }
    assert.deepEqual([many.visited(), named.visited()], [0, 0]);
  });

  test('end at the first mistake', () => {
    const words = counted(Array.from({ length: 1_000 }, () => ''));
    const rules = Array.from({ length: 64 }, () => ({ id: 'r', words: words.value, stage: 'input', action: 'flag' }));
    const checked = checkBody(OWN_POLICY, { rules });
    assert.equal('kind' in checked && checked.kind === 'invalid_field' && checked.field, 'rules.0.words.0');
    assert.equal(words.visited(), 1);
  });
});

function checkBody(name: string, value: object): ReturnType<typeof checkAgainst> {
  const body = operations.find((route) => nameOf(route) === name)?.description.body;
  assert.ok(body, `there is no ${name}`);
  return checkAgainst(body, value);
}

/** A list or record that counts how many of its items were looked at. */
function counted<Value extends object>(target: Value): { readonly value: Value; readonly visited: () => number } {
  let visited = 0;
  const value = new Proxy(target, {
    get(_, key) {
      if (key !== 'length' && Object.hasOwn(target, key)) visited += 1;
      return Reflect.get(target, key);
    },
  });
  return { value, visited: () => visited };
}

/** The places in a schema that can hold any number of items. A record has `propertyNames`; a loose object does not. */
function unboundedIn(body: (typeof operations)[number]['description']['body']): string[] {
  if (body === null) return [];
  const schemas = new DocumentSchemas();
  const root = schemas.of(body, 'input');
  const components = schemas.components() as Readonly<Record<string, Json>>;
  const found: string[] = [];
  const visit = (value: unknown, place: string, within: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return;
    const { $ref, type, maxItems, propertyNames, maxProperties } = value as Json;
    const name = typeof $ref === 'string' ? ($ref.split('/').at(-1) ?? '') : null;
    if (name !== null && !within.includes(name)) visit(components[name], `${place}<${name}>`, [...within, name]);
    if (type === 'array' && maxItems === undefined) found.push(`${place}[]`);
    if (propertyNames !== undefined && maxProperties === undefined) found.push(`${place}{}`);
    for (const [key, inner] of Object.entries(value)) visit(inner, `${place}.${key}`, within);
  };
  visit(root, '', []);
  return found;
}
