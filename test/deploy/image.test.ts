// The images, built by buildah and run: non-root, with one volume. The base is TOLLGATE_TEST_BASE
// (an image with Node 22), or the one of the Dockerfile where its registry can be reached.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { packProduct } from '../support/pack-product.ts';
import { needs } from '../support/programs.ts';
import { waitFor } from '../support/waiting.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DOCKERFILE = 'deploy/image/Dockerfile';
const BASE =
  process.env['TOLLGATE_TEST_BASE'] ??
  /^ARG BASE=(\S+)$/m.exec(readFileSync(join(ROOT, DOCKERFILE), 'utf8'))?.[1] ??
  '';
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
/** What works without a kernel that allows namespaces within namespaces. */
const ISOLATION = ['--isolation', 'chroot'];

test('the compose file runs what the image and the dashboards are', () => {
  const text = readFileSync(join(ROOT, 'deploy/compose/compose.yaml'), 'utf8');
  assert.ok(text.includes(`tollgate:${version}`), 'the version of package.json');
  assert.ok(readFileSync(join(ROOT, DOCKERFILE), 'utf8').includes(`ARG VERSION=${version}`));
  assert.ok(readFileSync(join(ROOT, 'deploy/helm/tollgate/Chart.yaml'), 'utf8').includes(`appVersion: "${version}"`));
});

describe('the images', await withBase(), () => {
  const built: string[] = [];
  /** What the Dockerfile takes, apart from the checkout, whose release/ may be somebody's. */
  let source = '';
  before(async () => {
    source = mkdtempSync(join(tmpdir(), 'tollgate-image-'));
    await packProduct(join(source, 'release'));
    for (const file of ['package-lock.json', '.npmrc', 'build/trim-dependencies.js'])
      cpSync(join(ROOT, file), join(source, file), { recursive: true });
  });
  after(async () => {
    for (const image of built) await buildah('rmi', '--force', image);
    rmSync(source, { recursive: true, force: true });
  });

  test('slim runs as nobody of importance, and says what it needs', async (context) => {
    const image = await build('slim');
    const { stdout } = await buildah('inspect', '--type', 'image', image);
    const { config } = (JSON.parse(stdout) as { Docker: { config: Readonly<Record<string, unknown>> } }).Docker;
    assert.equal(config['User'], '10001:10001');
    assert.deepEqual(config['Volumes'], { '/data': {} });
    assert.ok(config['Healthcheck'] !== undefined, 'it has a health check');
    const container = await from(context, image);
    const command = ['node', '/package/bin/tollgate.js', 'start'];
    const fault = await buildah('run', ...ISOLATION, container, '--', ...command).then(
      () => assert.fail('it started'),
      (error: { stderr: string }) => error.stderr,
    );
    assert.match(fault, /DATABASE_URL: must be given[\s\S]*CLICKHOUSE_URL: must be given/);
  });

  test('embedded serves, is healthy, and ends when it is told to', async (context) => {
    const container = await from(context, await build('embedded'));
    const settings = await freeAddresses();
    const environment = settings.list.flatMap((setting) => ['--env', setting]);
    await servesUntilTold(
      ['buildah', 'run', ...ISOLATION, ...environment, container, '--', 'node', '/package/bin/tollgate.js', 'start'],
      settings,
    );
  });

  /** As compose and the chart run it. Buildah cannot, so its mounts are made by hand. */
  test('embedded serves from a read-only root without capabilities', asRoot(), async (context) => {
    const container = await from(context, await build('embedded'));
    const root = (await buildah('mount', container)).stdout.trim();
    const data = mkdtempSync(join(tmpdir(), 'tollgate-image-data-'));
    context.after(() => rmSync(data, { recursive: true, force: true }));
    chownSync(data, 10001, 10001);
    const { stdout } = await buildah('inspect', '--type', 'container', container);
    const { config } = (JSON.parse(stdout) as { Docker: { config: { Env: readonly string[] } } }).Docker;
    const settings = await freeAddresses();
    const script = `set -e
      mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"
      mount --bind "$2" "$1/data"; mount -t tmpfs none "$1/tmp"; mount --rbind /proc "$1/proc"; mount --rbind /dev "$1/dev"
      root=$1; shift 2
      exec chroot "$root" /usr/bin/env -i "$@" \
        setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
        sh -c '! touch /package/written && grep -q "CapBnd:.0*$" /proc/self/status && exec node /package/bin/tollgate.js start'`;
    await servesUntilTold(
      ['unshare', '--mount', 'sh', '-c', script, 'sh', root, data, ...config.Env, ...settings.list],
      settings,
    );
  });

  interface Settings {
    readonly port: number;
    readonly adminPort: number;
    readonly list: readonly string[];
  }

  async function freeAddresses(): Promise<Settings> {
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const list = [`PORT=${port}`, `ADMIN_PORT=${adminPort}`, 'HOST=127.0.0.1', 'ADMIN_HOST=127.0.0.1'];
    return { port, adminPort, list };
  }

  async function servesUntilTold([program = '', ...args]: readonly string[], { port, adminPort }: Settings) {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      await waitFor(
        'the banner',
        () => {
          if (child.exitCode !== null) assert.fail(`it ended: ${said}`);
          return said;
        },
        (text) => text.includes('Try it:'),
        120_000,
      );
      const ready = await httpCall(`http://127.0.0.1:${adminPort}/readyz`);
      assert.equal(ready.status, 200);
      const [key] = /tg-[\w-]{20,}/.exec(said) ?? assert.fail(said);
      const answer = await httpCall(`http://127.0.0.1:${port}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'service/auto', messages: [{ role: 'user', content: 'Hello' }] }),
      });
      assert.equal(answer.status, 200, answer.body.toString());
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  }

  async function build(target: string): Promise<string> {
    const name = `localhost/tollgate-test-${target}:${process.pid}`;
    if (built.includes(name)) return name;
    const options = ['--format', 'docker', ...ISOLATION, '--build-arg', `BASE=${BASE}`, '--target', target, '-t', name];
    await buildah('bud', ...options, '-f', join(ROOT, DOCKERFILE), source);
    built.push(name);
    return name;
  }

  async function from(context: TestContext, image: string): Promise<string> {
    const name = (await buildah('from', image)).stdout.trim();
    context.after(() => buildah('rm', name));
    return name;
  }
});

function buildah(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run('buildah', args, { cwd: ROOT, maxBuffer: 1 << 26 });
}

function asRoot(): { skip?: string } {
  return process.getuid?.() === 0 ? {} : { skip: 'mounts are made by root' };
}

async function withBase(): Promise<{ skip?: string }> {
  const there = needs('buildah');
  if (there.skip !== undefined) return there;
  return buildah('pull', '--policy', 'missing', BASE).then(
    () => ({}),
    () => ({ skip: `the base image ${BASE} cannot be had here; name one with Node 22 by TOLLGATE_TEST_BASE` }),
  );
}
