// The routes of uploaded files in a process of its own, which kills or stops itself at one step of an upload.
// Arguments: Postgres URL, data directory, organization, step, whether before or after the step, and the signal.

import { createMedia, type HeldMedia } from '../../src/gateway/control-plane/create-media.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { startHttpFront } from './http-front.ts';
import { silentLog } from './postgres.ts';
import { principalOf } from './principals.ts';
import { NOTHING_BEHIND } from './route-table.ts';

const [url = '', dataDirectory = '', organizationId = '', step = '', when = '', signal = ''] = process.argv.slice(2);
/** Only the first time counts: a process that is continued does not stop again. */
let isDone = false;
const postgres = createPostgres({ url, log: silentLog, max: 2 });
const config = {
  media: {
    storage: 'disk' as const,
    retrieval: 'bytes' as const,
    publicUrl: null,
    retentionDays: null,
    limits: { fileBytesMax: 10_000_000, organizationBytesMax: 10_000_000 },
  },
  publicUrl: 'https://gate.test',
  bodyTimeoutSeconds: 600,
  dataDirectory,
};
const media = await createMedia({
  config,
  pepper: Buffer.alloc(32, 3),
  log: silentLog,
  metrics: new MetricsRegistry(),
  postgres,
});
const principal = principalOf(organizationId, { apiKeyId: '11111111-1111-4111-8111-111111111111' });
const parts = {
  ...NOTHING_BEHIND,
  authenticator: new Authenticator(async () => principal, systemClock),
  media: media === null ? null : dying(media),
} as unknown as RouteParts;
const front = await startHttpFront(createRoutes(parts));
process.send?.(front.url);

function dying(held: HeldMedia): HeldMedia {
  const { objects, store } = held;
  const stage = async (id: string) => {
    const staged = await objects.stage(id);
    return {
      id: staged.id,
      path: staged.path,
      write: fatal('write', (bytes: Uint8Array) => staged.write(bytes)),
      finish: fatal('sync', () => staged.finish()),
      discard: () => staged.discard(),
    };
  };
  return {
    ...held,
    objects: {
      stage: fatal('stage', stage),
      keep: fatal('keep', (staged, file) => objects.keep(staged, file)),
      read: (id, range) => objects.read(id, range),
      remove: (id) => objects.remove(id),
      removeStaged: (id) => objects.removeStaged(id),
      list: () => objects.list(),
    },
    store: {
      ...store,
      reserve: fatal('reserve', (upload, bytes) => store.reserve(upload, bytes)),
      finishDuplicate: fatal('look', (upload, file) => store.finishDuplicate(upload, file)),
      finish: fatal('finish', (upload, file) => store.finish(upload, file)),
      release: fatal('release', (upload) => store.release(upload)),
    },
  };
}

function end(): void {
  if (isDone) return;
  isDone = true;
  process.kill(process.pid, signal);
}

function fatal<Values extends unknown[], T>(name: string, work: (...values: Values) => Promise<T>) {
  return async (...values: Values): Promise<T> => {
    if (name === step && when === 'before') end();
    const result = await work(...values);
    if (name === step && when === 'after') end();
    return result;
  };
}
