// Composes auto routing for a gateway process: the classifier over the process's provider connections, the turns in
// Postgres.

import { virtualModelOf } from '../../domain/routing/virtual-model.ts';
import type { SavedResponses } from '../../generation/catalog/saved-responses.ts';
import type { RelayContext } from '../../generation/reply/relay-params.ts';
import type { RequestScanner } from '../../generation/request/scan/request-scanner.ts';
import { Classifier } from '../../generation/routing/classifier.ts';
import { RoutePreviewer, type ScreenPreviewed } from '../../generation/routing/preview-route.ts';
import { Router, type RouterParts } from '../../generation/routing/router.ts';
import { RoutingMetrics } from '../../generation/routing/routing-metrics.ts';
import { SharedTurns } from '../../generation/routing/shared-turns.ts';
import type { TurnStore } from '../../generation/routing/turn-store.ts';
import type { Log } from '../../platform/log.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { claimTurn, decideTurn, findTurn, releaseTurn } from '../../storage/postgres/routing/turns.ts';

export interface RoutingParts {
  readonly brand: string;
  readonly postgres: Postgres;
  readonly savedResponses: SavedResponses;
  readonly log: Log;
  readonly registry: MetricsRegistry;
}

interface RoutedBy {
  readonly relay: RelayContext;
  readonly scanner: RequestScanner;
  readonly screen: ScreenPreviewed;
}

/** The router and its dry run, which share all of their parts. */
export function createRouter(
  { brand, postgres, savedResponses, log, registry }: RoutingParts,
  { relay, scanner, screen }: RoutedBy,
): { readonly router: Router; readonly previewer: RoutePreviewer } {
  const { clock, workers } = relay;
  const metrics = new RoutingMetrics(registry);
  const onStoreFault = (fault: unknown): void => {
    metrics.storeFault();
    log.warn(
      { err: fault },
      'Postgres could not be asked for the routes of turns: this process routes by what it remembers',
    );
  };
  const parts: RouterParts = {
    virtualModel: virtualModelOf(brand).id,
    workers,
    turns: new SharedTurns({ store: turnStoreIn(postgres), clock, onStoreFault }),
    classifier: new Classifier({ ...relay, metrics }),
    savedResponses,
    metrics,
  };
  return { router: new Router(parts), previewer: new RoutePreviewer(parts, scanner, screen) };
}

function turnStoreIn(postgres: Postgres): TurnStore {
  return {
    claim: (turn) => claimTurn(postgres, turn),
    find: (turn) => findTurn(postgres, turn),
    release: (turn) => releaseTurn(postgres, turn),
    decide: (turn, decision) => decideTurn(postgres, turn, decision),
  };
}
