// The HTTP front with routes of a test's own, in the test's process: for what is decided before or without the data plane.

import type { Route } from '../../src/http/route.ts';
import { Server } from '../../src/http/server.ts';
import { findFreePort } from './free-port.ts';

export interface HttpFront {
  readonly url: string;
  /** Throws what routes threw meanwhile: a fault is answered with 500 and is never expected here. */
  stop(): Promise<void>;
}

export const FRONT_PUBLIC_URL = 'https://gate.test';

export async function startHttpFront(routes: readonly Route[]): Promise<HttpFront> {
  const faults: unknown[] = [];
  const server = new Server({
    routes,
    renderContext: { requestId: null, publicUrl: FRONT_PUBLIC_URL },
    onRefusal: () => undefined,
    onFault: (fault) => faults.push(fault),
  });
  const port = await findFreePort();
  await server.listen('127.0.0.1', port);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await server.drain(0);
      if (faults.length > 0) throw new AggregateError(faults, `routes threw ${faults.length} times`);
    },
  };
}
