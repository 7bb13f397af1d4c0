// The route table is consistent: no row twice, every row says who may call it, and the OpenAPI document contains every
// route and is valid.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildOpenapiDocument, type OpenapiDocument } from '../../src/control-plane/openapi/build-document.ts';
import { nameOf, routeTable } from '../support/route-table.ts';

const table = routeTable();
const document = JSON.parse(
  JSON.stringify(buildOpenapiDocument(table, { version: '1', publicUrl: 'https://gate.test' })),
) as OpenapiDocument;

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly content: object };
  readonly responses: Readonly<Record<string, object>>;
}

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    path,
    method,
    operation: operation as unknown as Operation,
  })),
);

describe('the route table', () => {
  test('has every row once', () => {
    const names = table.map(nameOf);
    assert.deepEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      [],
    );
    // Two patterns that differ in parameter names alone are one route to the router.
    const patterns = table.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`);
    assert.equal(new Set(patterns).size, patterns.length);
  });

  test('says who may call each route, and where the permission applies', () => {
    for (const route of table) {
      const where = nameOf(route);
      if (route.plane === 'process') assert.deepEqual([route.permission, route.scope], [null, 'none'], where);
      if (route.plane === 'data') assert.deepEqual([route.permission, route.scope], ['inference', 'key'], where);
      assert.equal(route.scope === 'platform', route.permission === 'platform.admin', where);
      if (route.path.startsWith('/v1/admin/')) assert.notEqual(route.permission, null, where);
      if (route.path.startsWith('/v1/me/')) assert.ok(route.scope === 'person' || route.scope === 'member', where);
      if (route.path.startsWith('/v1/admin/organizations')) assert.equal(route.scope, 'platform', where);
      if (route.scope === 'team') assert.ok(route.path.includes('/:teamId'), `${where} names no team`);
      if (route.scope === 'organization' || route.scope === 'team' || route.scope === 'member')
        assert.notEqual(route.permission, null, where);
    }
  });

  test('needs no permission only on the listed routes', () => {
    assert.deepEqual(table.filter((route) => route.plane === 'process').map(nameOf), [
      'GET /v1/responses',
      'GET /v1/media/:id/public/:signature',
      'GET /console',
      'GET /console/:path',
      'GET /v1/console/sign-in',
      'POST /v1/console/sign-in',
      'GET /v1/console/oidc/:providerName',
      'GET /v1/console/oidc/:providerName/callback',
      'GET /healthz',
      'GET /readyz',
      'GET /openapi.json',
    ]);
  });
});

describe('the OpenAPI document', () => {
  test('has every route, and nothing else', () => {
    const described = operations.map(
      ({ path, method }) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    );
    assert.deepEqual(described.toSorted(), table.map(nameOf).toSorted());
  });

  test('names every operation once', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
    for (const { operation } of operations) {
      assert.match(operation.operationId, /^[a-z][A-Za-z]+$/);
      assert.match(operation.summary, /^[A-Z].*\.$/, operation.operationId);
    }
  });

  test('declares every path parameter, and no other', () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = operation.parameters.filter((parameter) => parameter.in === 'path');
      assert.deepEqual(
        declared.map(({ name }) => name),
        inPath,
        operation.operationId,
      );
      assert.ok(
        declared.every(({ required }) => required),
        operation.operationId,
      );
      const names = operation.parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      assert.equal(new Set(names).size, names.length, operation.operationId);
    }
  });

  test('every reference resolves, and every component is referred to', () => {
    const referred = new Set<string>();
    visit(document, (key, value) => {
      if (key === '$ref') referred.add(String(value));
      assert.notEqual(key, '$defs');
    });
    assert.ok(referred.size > 10);
    const { schemas, responses, headers } = document.components;
    const components = Object.entries({ schemas, responses, headers }).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `#/components/${kind}/${name}`),
    );
    assert.deepEqual([...referred].toSorted(), components.toSorted());
  });

  test('every operation answers, and only those that take a body have one', () => {
    for (const { method, operation } of operations) {
      const statuses = Object.keys(operation.responses);
      const succeeds = statuses.some((status) => status.startsWith('2') || status === '303');
      assert.equal(succeeds, operation.operationId !== 'refuseResponsesUpgrade', operation.operationId);
      assert.ok(statuses.includes('500'), operation.operationId);
      if (method === 'get' || method === 'delete')
        assert.equal(operation.requestBody, undefined, operation.operationId);
      if (method === 'put' || method === 'patch')
        assert.notEqual(operation.requestBody, undefined, operation.operationId);
    }
  });

  test('never lets a secret into what is shown more than once', () => {
    const withSecret = Object.entries(document.components.schemas)
      .filter(([, schema]) => 'secret' in ((schema as { properties?: object }).properties ?? {}))
      .map(([name]) => name);
    assert.deepEqual(withSecret.toSorted(), ['KeyWithSecret', 'TokenWithSecret', 'WebhookWithSecret']);
  });
});

function visit(value: unknown, see: (key: string, value: unknown) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    see(key, inner);
    visit(inner, see);
  }
}
