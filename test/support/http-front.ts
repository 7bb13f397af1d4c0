// The HTTP front with a test's own routes, in the test's process: for decisions that are made before or without the
// data plane.

import type { ConnectionCap } from '../../src/http/connections.ts';
import type { Front } from '../../src/http/fronts/front.ts';
import type { Route } from '../../src/http/route.ts';
import { type HttpLimits, Server } from '../../src/http/server.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import { expectDocumentedAnswers } from './documented-answers.ts';
import { findFreePort } from './free-port.ts';
import { frontOfThisRun } from './http-front-name.ts';

export interface HttpFront {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** The caps for which connections were closed on arrival. */
  readonly refusedConnections: readonly ConnectionCap[];
  /** The kinds of refusals that were sent. */
  readonly refusals: readonly string[];
  /** Throws errors that routes threw meanwhile: a fault is answered with 500 and never expected here. */
  stop(): Promise<void>;
}

export const FRONT_PUBLIC_URL = 'https://gate.test';

const ROOMY: HttpLimits = {
  connectionsMax: 1_000_000,
  connectionsPerAddressMax: 1_000_000,
  trustedAddresses: [],
  bodyTimeoutMs: 600_000,
  droppedBytesMax: 1 << 27,
};

export async function startHttpFront(
  routes: readonly Route[],
  limits: Partial<HttpLimits> = {},
  front?: Front,
): Promise<HttpFront> {
  const faults: unknown[] = [];
  const refusedConnections: ConnectionCap[] = [];
  const refusals: string[] = [];
  const server = new Server({
    front: front ?? (await frontOfThisRun()),
    routes,
    renderContext: { publicUrl: FRONT_PUBLIC_URL },
    nextRequestId: createExecutionIdSource(systemClock),
    onRefusal: (kind) => refusals.push(kind),
    onFault: (fault) => faults.push(fault),
    onConnectionRefused: (cap) => refusedConnections.push(cap),
    limits: { ...ROOMY, ...limits },
  });
  const port = await findFreePort();
  await server.listen('127.0.0.1', port);
  const url = `http://127.0.0.1:${port}`;
  // These are all routes, so the OpenAPI document describes the answers.
  if (routes.some(({ path }) => path === '/openapi.json')) expectDocumentedAnswers(url);
  return {
    url,
    port,
    server,
    refusedConnections,
    refusals,
    async stop() {
      await server.drain(0);
      if (faults.length > 0) throw new AggregateError(faults, `routes threw ${faults.length} times`);
    },
  };
}
