// The Helm chart, rendered by a real Helm: what it must have, what it refuses, and that no secret stands in it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { SECRET_SETTINGS, SETTING_NAMES } from '../../src/config.ts';
import { needs } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHART = join(ROOT, 'deploy/helm/tollgate');
/** A Helm that was built by `go install` believes in a Kubernetes of 2020. */
const KUBERNETES = ['--kube-version', '1.33.0'];
const VALUES = {
  existingSecret: 'tollgate-secrets',
  configuration: 'providers: []\nmodels: []\n',
  monitoring: { podMonitor: true, rules: true },
};

/** What Kubernetes takes has no types here: a test that names a field that is not there fails. */
// oxlint-disable-next-line typescript/no-explicit-any
type Objects = Readonly<Record<string, any>>;

/** By templates/statefulset.yaml. */
const SAID_BY_THE_CHART = [
  'HOST',
  'PORT',
  'ADMIN_HOST',
  'ADMIN_PORT',
  'DATA_DIR',
  'GATEWAY_PROCESSES',
  'DRAIN_SECONDS',
];

test('the chart’s schema refuses among the settings all that is secret, and what the chart says itself', () => {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as Objects;
  const { pattern, not } = schema['properties'].settings.propertyNames;
  assert.deepEqual(new Set(not.enum), new Set([...SECRET_SETTINGS, ...SAID_BY_THE_CHART]));
  const allowed = SETTING_NAMES.filter((name) => !not.enum.includes(name));
  assert.deepEqual(
    allowed.filter((name) => !new RegExp(pattern).test(name)),
    [],
    'every other setting can be given',
  );
});

describe('the chart', needs('helm'), () => {
  test('is linted without a fault', async (context) => {
    await run('helm', ['lint', '--strict', CHART, '-f', valuesFile(context, VALUES)]);
  });

  test('has a volume for each pod, a budget for disruptions and time to drain', async (context) => {
    const objects = await render(context, VALUES);
    const { spec } = objects['StatefulSet'];
    const [claim] = spec.volumeClaimTemplates;
    assert.deepEqual(claim.spec.resources.requests, { storage: '20Gi' });
    assert.equal(spec.persistentVolumeClaimRetentionPolicy.whenScaled, 'Retain');
    const { containers, securityContext, terminationGracePeriodSeconds } = spec.template.spec;
    const [container] = containers;
    const settings = Object.fromEntries(container.env.map(({ name, value }: Objects) => [name, value]));
    assert.equal(terminationGracePeriodSeconds, Number(settings.DRAIN_SECONDS) + 10 + 30);
    assert.equal(securityContext.runAsNonRoot, true);
    assert.equal(container.securityContext.readOnlyRootFilesystem, true);
    assert.deepEqual(container.securityContext.capabilities, { drop: ['ALL'] });
    const written = container.volumeMounts.filter(({ readOnly }: Objects) => readOnly !== true);
    assert.deepEqual(
      written.map(({ mountPath }: Objects) => mountPath),
      ['/data', '/tmp'],
    );
    assert.deepEqual(container.envFrom, [{ secretRef: { name: 'tollgate-secrets' } }]);
    assert.equal(objects['PodDisruptionBudget'].spec.maxUnavailable, 1);
    assert.deepEqual(objects['PodDisruptionBudget'].spec.selector, spec.selector);
    assert.equal(objects['Secret'], undefined, 'it makes none');
  });

  test('gives the pods the file as it was written, and restarts them with it', async (context) => {
    const configuration = 'providers:\n  - id: one\n    api_key: ${ONE_KEY}\n';
    const objects = await render(context, { ...VALUES, configuration });
    assert.equal(objects['ConfigMap'].data['tollgate.yaml'], configuration);
    const before = await render(context, VALUES);
    const checksum = ({ StatefulSet }: Objects) =>
      StatefulSet.spec.template.metadata.annotations['checksum/configuration'];
    assert.notEqual(checksum(objects), checksum(before));
  });

  test('carries the alerts of deploy/prometheus', async (context) => {
    const rules = parse(readFileSync(join(ROOT, 'deploy/prometheus/tollgate-rules.yaml'), 'utf8')) as unknown;
    assert.deepEqual(
      (await render(context, VALUES))['PrometheusRule'].spec,
      rules,
      'copy the rules to the chart’s files/',
    );
  });

  test('lets whom it is told reach the pods, and the admin port nobody else', async (context) => {
    assert.equal((await render(context, VALUES))['NetworkPolicy'], undefined);
    const prometheus = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } };
    const named = await render(context, { ...VALUES, networkPolicy: { enabled: true, admins: [prometheus] } });
    const { podSelector, policyTypes, ingress } = named['NetworkPolicy'].spec;
    assert.deepEqual(podSelector, named['StatefulSet'].spec.selector);
    assert.deepEqual(policyTypes, ['Ingress']);
    assert.deepEqual(ingress, [
      { ports: [{ protocol: 'TCP', port: 'http' }] },
      { ports: [{ protocol: 'TCP', port: 'admin' }], from: [prometheus] },
    ]);
    const nobody = await render(context, { ...VALUES, networkPolicy: { enabled: true, clients: [prometheus] } });
    assert.deepEqual(nobody['NetworkPolicy'].spec.ingress, [
      { ports: [{ protocol: 'TCP', port: 'http' }], from: [prometheus] },
    ]);
  });

  const REFUSED: readonly (readonly [what: string, values: object, says: RegExp])[] = [
    ['an unknown key', { ...VALUES, replcas: 2 }, /replcas/],
    ['an unknown key below another', { ...VALUES, persistence: { sise: '1Gi', size: '1Gi' } }, /sise/],
    ['no secret', { ...VALUES, existingSecret: '' }, /existingSecret/],
    ['no configuration', { ...VALUES, configuration: '' }, /configuration or existingConfigMap/],
    ...[...SECRET_SETTINGS, ...SAID_BY_THE_CHART].map(
      (name) => [`${name} among the settings`, { ...VALUES, settings: { [name]: 'x' } }, new RegExp(name)] as const,
    ),
    ['two configurations', { ...VALUES, existingConfigMap: 'mine' }, /configuration and existingConfigMap/],
    ['a number of pods that no cluster has', { ...VALUES, replicas: 1_000_000 }, /replicas/],
    ['a budget that is none', { ...VALUES, disruptionBudget: { maxUnavailable: 'some' } }, /maxUnavailable/],
    ['a negative budget', { ...VALUES, disruptionBudget: { maxUnavailable: -1 } }, /maxUnavailable/],
    ['a budget that is empty', { ...VALUES, disruptionBudget: { maxUnavailable: null } }, /maxUnavailable/],
    ['no size', { ...VALUES, persistence: { size: '0Gi' } }, /size/],
    ['a setting that is no text', { ...VALUES, settings: { WORKER_THREADS: 2 } }, /WORKER_THREADS/],
    ['a setting in small letters', { ...VALUES, settings: { brand: 'Acme' } }, /brand/],
    ['a wrong kind of number', { ...VALUES, drainSeconds: '60' }, /drainSeconds/],
    ['a Secret with a name that none has', { ...VALUES, existingSecret: 'A b' }, /existingSecret/],
    ['a configuration that is no text', { ...VALUES, configuration: { providers: [] } }, /configuration/],
    ['a size without a unit', { ...VALUES, persistence: { size: '20' } }, /size/],
  ];
  for (const [what, values, says] of REFUSED) {
    test(`refuses ${what}`, async (context) => {
      await assert.rejects(render(context, values), says);
    });
  }
});

async function render(context: TestContext, values: object): Promise<Objects> {
  const file = valuesFile(context, values);
  const { stdout } = await run('helm', ['template', 'release', CHART, '-f', file, ...KUBERNETES]);
  const objects: Record<string, unknown> = {};
  for (const document of parseAllDocuments(stdout)) {
    const object = document.toJS() as { kind: string } | null;
    if (object !== null) objects[object.kind] = object;
  }
  return objects;
}

function valuesFile(context: TestContext, values: object): string {
  const path = join(temporaryDirectory(context), 'values.yaml');
  writeFileSync(path, JSON.stringify(values));
  return path;
}
