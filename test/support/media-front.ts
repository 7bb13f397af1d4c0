// The routes of uploaded files over HTTP, on a real Postgres and a real directory, in the test's process. The test
// decides who calls.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChangeMeter } from '../../src/control-plane/change-meter.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { ROLE_PERMISSIONS } from '../../src/domain/identity/roles.ts';
import { createMedia, type HeldMedia } from '../../src/gateway/control-plane/create-media.ts';
import { createIdentityStore } from '../../src/gateway/control-plane/identity-store.ts';
import { createMediaRows } from '../../src/gateway/control-plane/media-rows.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import type { MediaConfig } from '../../src/media-settings.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { fundOrganization } from './executions.ts';
import { type HttpAnswer, type HttpCall, httpCall } from './http-call.ts';
import { FRONT_PUBLIC_URL, type HttpFront, startHttpFront } from './http-front.ts';
import { secretsOf } from './installation-secrets.ts';
import { type FormEntry, writeForm } from './multipart-forms.ts';
import { silentLog } from './postgres.ts';
import { principalOf } from './principals.ts';
import { NOTHING_BEHIND } from './route-table.ts';

export const BOUNDARY = 'a-boundary-of-a-test';
const DEFAULTS = { storage: 'disk', retrieval: 'bytes', publicUrl: null, retentionDays: null } as const;
const MASTER_KEY = Buffer.alloc(32, 7);

export interface MediaFront {
  readonly url: string;
  readonly front: HttpFront;
  readonly media: HeldMedia | null;
  readonly dataDirectory: string;
  readonly organizations: Readonly<Record<'acme' | 'other', string>>;
  /** `as` null calls without a credential. */
  call(as: string | null, path: string, call?: HttpCall): Promise<HttpAnswer>;
  upload(as: string, bytes: Buffer | string, more?: Partial<FormEntry>): Promise<UploadAnswer>;
  /** Names of the stored files, and of those that are being received. */
  files(): { readonly objects: readonly string[]; readonly staged: readonly string[] };
  stop(): Promise<void>;
}

export interface UploadAnswer {
  readonly status: number;
  readonly text: string;
  readonly body: {
    readonly id: string;
    readonly mime: string;
    readonly bytes: number;
    readonly deduped: boolean;
    readonly url: string;
  };
}

export interface MediaFrontPlace {
  /** Absent: a new directory, removed at the end. */
  readonly dataDirectory?: string;
  /**
   * Makes this front a second gateway of that front's installation; absent: a new installation with its own
   * organizations and directory.
   */
  readonly beside?: MediaFront;
}

/** `config` null: the installation stores no files. */
export async function startMediaFront(
  postgres: Postgres,
  config: (Partial<MediaConfig> & Pick<MediaConfig, 'limits'>) | null,
  place: MediaFrontPlace = {},
): Promise<MediaFront> {
  const dataDirectory = place.dataDirectory ?? mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const organizations = place.beside?.organizations ?? {
    acme: (await fundOrganization(postgres, 0n)).organizationId,
    other: (await fundOrganization(postgres, 0n)).organizationId,
  };
  // Each test's fronts have another directory in the same database, so the registered directory is removed.
  if (place.beside === undefined) await postgres.query('DELETE FROM media_home');
  const media = await createMedia({
    config: {
      media: config === null ? null : { ...DEFAULTS, ...config },
      publicUrl: FRONT_PUBLIC_URL,
      bodyTimeoutSeconds: 600,
      dataDirectory,
    },
    pepper: Buffer.alloc(32, 3),
    log: silentLog,
    metrics: new MetricsRegistry(),
    postgres,
  });
  const principals = principalsOf(organizations);
  const identity = createIdentityStore(postgres, secretsOf(MASTER_KEY));
  const parts = {
    ...NOTHING_BEHIND,
    authenticator: new Authenticator(async (credential) => principals[credential] ?? null, systemClock),
    changeMeter: new ChangeMeter(systemClock, 1_000_000),
    identity,
    media,
    mediaRows: createMediaRows(postgres, systemClock),
  } as unknown as RouteParts;
  const front = await startHttpFront(createRoutes(parts));
  const call: MediaFront['call'] = (as, path, { headers, ...more } = {}) =>
    httpCall(`${front.url}${path}`, {
      ...more,
      headers: { ...(as === null ? {} : { authorization: `Bearer ${as}` }), ...headers },
    });
  return {
    url: front.url,
    front,
    media,
    dataDirectory,
    organizations,
    call,
    async upload(as, bytes, more = {}) {
      const answer = await call(as, '/v1/media/upload', {
        body: writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value: bytes, ...more }]),
        headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      });
      const text = answer.body.toString();
      return { status: answer.status, text, body: JSON.parse(text) };
    },
    files() {
      const below = (folder: string): string[] => {
        const path = join(dataDirectory, 'media', folder);
        if (!existsSync(path)) return [];
        return readdirSync(path, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ name }) => name);
      };
      return { objects: below('objects'), staged: below('staged') };
    },
    async stop() {
      await front.stop();
      if (place.dataDirectory === undefined) rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
}

function principalsOf({ acme, other }: MediaFront['organizations']): Readonly<Record<string, Principal>> {
  const keyOf = (organizationId: string) => principalOf(organizationId, { apiKeyId: randomUUID() });
  const ownerOf = (organizationId: string) =>
    principalOf(organizationId, {
      credential: 'token',
      apiKeyId: randomUUID(),
      userId: randomUUID(),
      permissions: ROLE_PERMISSIONS.owner,
    });
  const platform = { ...ownerOf(acme), organizationId: null, permissions: ['platform.admin' as const] };
  return {
    acme: keyOf(acme),
    colleague: keyOf(acme),
    other: keyOf(other),
    owner: ownerOf(acme),
    otherOwner: ownerOf(other),
    platform: { ...platform, platformAdmin: true },
  };
}
