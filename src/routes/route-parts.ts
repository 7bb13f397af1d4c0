// What the route table is made of: the planes and the functions of storage, put together by the composition root.

import type { BillingStore } from '../control-plane/billing/billing-store.ts';
import type { WebhookTargets } from '../control-plane/billing/webhooks.ts';
import type { CatalogStore } from '../control-plane/catalog/catalog-store.ts';
import type { CatalogCheck } from '../control-plane/catalog/check-catalog.ts';
import type { HealthOf } from '../control-plane/catalog/health-fields.ts';
import type { ChangeMeter } from '../control-plane/change-meter.ts';
import type { ConsoleParts } from '../control-plane/console/console-parts.ts';
import type { GenerationLookup } from '../control-plane/executions/get-generation.ts';
import type { FindGenerations } from '../control-plane/executions/list-generations.ts';
import type { GuardrailStore } from '../control-plane/guardrails/guardrail-store.ts';
import type { GuardrailTrials } from '../control-plane/guardrails/test-text.ts';
import type { IdentityStore } from '../control-plane/identity/identity-store.ts';
import type { InstallationStore } from '../control-plane/installation/installation-store.ts';
import type { MediaRows } from '../control-plane/media/manage-media.ts';
import type { Media } from '../control-plane/media/media-parts.ts';
import type { OwnKeysStore } from '../control-plane/own-keys/own-keys-store.ts';
import type { ReportForwarder } from '../control-plane/reports/forward-report.ts';
import type { PreviewRoute } from '../control-plane/routing/preview.ts';
import type { PolicyReplay } from '../control-plane/routing/replay.ts';
import type { RoutingStore } from '../control-plane/routing/routing-store.ts';
import type { Catalog } from '../domain/models/catalog.ts';
import type { VirtualModel } from '../domain/routing/virtual-model.ts';
import type { Authenticator } from '../generation/identity/authenticate.ts';
import type { DataPlane } from '../generation/plane.ts';

export interface RouteParts {
  readonly plane: DataPlane;
  readonly authenticator: Authenticator;
  readonly changeMeter: ChangeMeter;
  readonly catalog: () => Catalog;
  readonly virtualModel: VirtualModel;
  readonly lookup: GenerationLookup;
  readonly findGenerations: FindGenerations;
  readonly identity: IdentityStore;
  readonly billing: BillingStore;
  readonly ownKeys: OwnKeysStore;
  readonly routing: RoutingStore;
  readonly guardrails: GuardrailStore;
  readonly guardrailTrials: GuardrailTrials;
  /** null: the installation keeps no files. */
  readonly media: Media | null;
  readonly mediaRows: MediaRows;
  readonly catalogStore: CatalogStore;
  readonly healthOf: HealthOf;
  readonly previewRoute: PreviewRoute;
  readonly replayPolicy: PolicyReplay;
  readonly checkCatalog: CatalogCheck;
  readonly reports: ReportForwarder;
  readonly console: ConsoleParts;
  readonly installation: InstallationStore;
  readonly webhookTargets: WebhookTargets;
  /** Where clients reach the service (PUBLIC_URL). */
  readonly publicUrl: string;
  /** APIs whose admission refusals the operator switched to their dialect. */
  readonly dialectRefusals: ReadonlySet<string>;
  /** Names of what is not ready; empty when this process can serve. */
  readonly notReady: () => readonly string[];
}
