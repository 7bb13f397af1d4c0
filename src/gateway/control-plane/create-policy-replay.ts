// Provides the replay of a draft of a routing policy to the control plane. It runs one replay at a time, and reads
// recently routed requests a little at a time, so that it never holds the event loop.

import type { PolicyReplay, ReplayParams } from '../../control-plane/routing/replay.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import { policyOf } from '../../domain/routing/policy-definition.ts';
import { replayPolicy } from '../../domain/routing/replay-policy.ts';
import type { Clock } from '../../platform/clock.ts';
import { DAY_MS } from '../../platform/durations.ts';
import { TimeSlices } from '../../platform/event-loop/time-slices.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import { invalid, NOT_FOUND } from '../../storage/postgres/identity/change.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { findOrganizationCaller, listAllowedModels } from '../../storage/postgres/routing/organization-caller.ts';
import { getPolicy, refuseDraft } from '../../storage/postgres/routing/policies.ts';
import { findReplayStart, readRoutedRequests } from '../../storage/postgres/routing/routed-requests.ts';

const REPLAYS = { underWayMax: 1, waitingMax: 4, waitMsMax: 10_000 } as const;
const PAGE_SIZE = 100;
/** How long requests are decided without a break: a policy may have thousands of candidates. */
const PIECE_MS = 2;

interface ReplayParts {
  readonly postgres: Postgres;
  readonly catalog: () => Catalog;
  readonly clock: Clock;
}

interface ReplayContext extends ReplayParts {
  readonly slices: TimeSlices;
}

export function createPolicyReplay(parts: ReplayParts): PolicyReplay {
  const replays = new FairQueue(REPLAYS);
  const slices = new TimeSlices(parts.clock);
  return (params) => replays.run(() => replay({ ...parts, slices }, params), { kind: 'store_busy' } as const);
}

/** Passes all on, with breaks in which the rest of the process runs. */
async function* inPieces<T>(all: AsyncIterable<T>, { clock, slices }: ReplayContext): AsyncGenerator<T> {
  let begunMs = clock.monotonicMs();
  for await (const one of all) {
    if (clock.monotonicMs() - begunMs > PIECE_MS) {
      await slices.next();
      begunMs = clock.monotonicMs();
    }
    yield one;
  }
}

async function replay(parts: ReplayContext, params: ReplayParams) {
  const { postgres, catalog, clock } = parts;
  const { policy, organizationId, days, executionsMax } = params;
  if (organizationId !== null && (await findOrganizationCaller(postgres, organizationId)) === null) return NOT_FOUND;
  const stored = typeof policy === 'string' ? await getPolicy(postgres, policy) : null;
  if (stored !== null && 'refused' in stored) return invalid('policy', 'must be the name of a routing policy');
  const definition = stored?.definition ?? policy;
  if (typeof definition === 'string') return invalid('policy', 'must be the name of a routing policy');
  const refused = await refuseDraft(postgres, definition, organizationId);
  if (refused !== null) return refused;
  const [{ byName }, allowed] = [catalog(), await listAllowedModels(postgres)];
  const draft = {
    policy: policyOf('draft', 0, definition),
    modelNamed: (name: string) => byName.get(name) ?? null,
    allowedModelsOf: (id: string) => allowed.get(id) ?? null,
  };
  const start = await findReplayStart(postgres, { sinceMs: clock.nowMs() - days * DAY_MS, executionsMax });
  const requests = readRoutedRequests(postgres, { after: start.after, organizationId, pageSize: PAGE_SIZE });
  const report = await replayPolicy(draft, inPieces(requests, parts));
  return { report, isWhole: start.isWhole };
}
