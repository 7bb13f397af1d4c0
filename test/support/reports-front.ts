// The reports over HTTP, in the test's process: the real route table, forwarder, report server and embedded ClickHouse;
// the test decides who calls, and the time.

import assert from 'node:assert/strict';
import { ReportServer } from '../../jobs/reports/report-server.ts';
import type { FindEndedExecution } from '../../jobs/reports/request-details.ts';
import { ReportForwarder, type ReportForwarderOptions } from '../../src/control-plane/reports/forward-report.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import type { FindOwnerNames } from '../../src/domain/reports/owners.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import type { ClickHouseClient, ClickHouseSettings } from '../../src/storage/clickhouse/clickhouse.ts';
import type { SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { type HttpAnswer, httpCall } from './http-call.ts';
import { startHttpFront } from './http-front.ts';
import { NOTHING_BEHIND } from './route-table.ts';
import { silentLog } from './silent-log.ts';

export type Json = Readonly<Record<string, unknown>>;

export const DELEGATION_KEY = Buffer.from('k'.repeat(43));

export interface ReportsFrontOptions {
  readonly principals: Readonly<Record<string, Principal>>;
  /** null: ClickHouse is away. */
  readonly clickhouse: () => ClickHouseClient | null;
  /** By default none. */
  readonly sealedDays?: () => SealedDays | null;
  /** The organization of each team. */
  readonly teams?: ReadonlyMap<string, string>;
  readonly clock?: Clock;
  /** The gateway's key; jobs has `DELEGATION_KEY`. */
  readonly delegationKey?: Buffer | null;
  /** The address that the gateway asks; by default that of the report server. */
  readonly address?: ReportForwarderOptions['address'];
  readonly limits?: ReportForwarderOptions['limits'];
  /** How many statements of reports run at once. */
  readonly atOnce?: number;
  /** The settings of every statement. */
  readonly settings?: ClickHouseSettings;
  /** By default nobody has a name. */
  readonly ownerNames?: FindOwnerNames;
  /** By default nothing is known of a request but its fact. */
  readonly endedExecution?: FindEndedExecution;
}

const NAMELESS: FindOwnerNames = async () => ({
  organization: new Map(),
  team: new Map(),
  user: new Map(),
  api_key: new Map(),
});

export interface ReportsFront {
  readonly url: string;
  /** The port of the report server. */
  readonly jobsPort: number;
  readonly forwarder: ReportForwarder;
  get(as: string, path: string, headers?: Readonly<Record<string, string>>): Promise<HttpAnswer>;
  /** The parsed body of an answer that must be 200. */
  json(as: string, path: string): Promise<Json>;
  stop(): Promise<void>;
}

export async function startReportsFront(options: ReportsFrontOptions): Promise<ReportsFront> {
  const {
    principals,
    clickhouse,
    sealedDays = () => null,
    teams = new Map(),
    clock = systemClock,
    delegationKey = DELEGATION_KEY,
    limits = {},
    atOnce = 2,
    settings = {},
    ownerNames = NAMELESS,
    endedExecution = async () => null,
  } = options;
  const server = new ReportServer({
    address: { host: '127.0.0.1', port: 0 },
    delegationKey: DELEGATION_KEY,
    issuer: 'Service',
    ownerNames,
    endedExecution,
    clickhouse,
    sealedDays,
    atOnce,
    settings,
    log: silentLog,
    clock,
    metrics: new MetricsRegistry(),
  });
  await server.start();
  const forwarder = new ReportForwarder({
    address: options.address ?? { host: '127.0.0.1', port: server.port },
    delegationKey,
    clock,
    log: silentLog,
    limits,
  });
  const parts = {
    ...NOTHING_BEHIND,
    authenticator: new Authenticator(async (credential) => principals[credential] ?? null, systemClock),
    reports: forwarder,
    identity: {
      getTeam: async ({ organizationId, teamId }: { organizationId: string; teamId: string }) =>
        teams.get(teamId) === organizationId ? { id: teamId } : { refused: 'not_found' },
    },
  } as unknown as RouteParts;
  const front = await startHttpFront(createRoutes(parts));
  const get: ReportsFront['get'] = (as, path, headers = {}) =>
    httpCall(`${front.url}${path}`, { headers: { authorization: `Bearer ${as}`, ...headers } });
  return {
    url: front.url,
    jobsPort: server.port,
    forwarder,
    get,
    async json(as, path) {
      const answer = await get(as, path);
      assert.equal(answer.status, 200, `${path}: ${answer.body.toString()}`);
      return JSON.parse(answer.body.toString()) as Json;
    },
    async stop() {
      await front.stop();
      await server.close(0);
    },
  };
}
