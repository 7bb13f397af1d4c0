// The parts of one process's data plane, built once by the gateway.

import type { Clock } from '../platform/clock.ts';
import type { AdmissionParts } from './admission/admit.ts';
import type { SavedResponses } from './catalog/saved-responses.ts';
import type { ServingCatalog } from './catalog/serving-catalog.ts';
import type { Metering } from './execution/execution.ts';
import type { RefusedRequests } from './execution/refused-requests.ts';
import type { ExternalDetectors } from './guardrails/external-detectors.ts';
import type { PoliciesInForce } from './guardrails/policies-in-force.ts';
import type { GuardrailHeaders } from './guardrails/screening.ts';
import type { Authenticator } from './identity/authenticate.ts';
import type { HeldOwnKeys } from './own-keys/held-own-keys.ts';
import type { RelayContext } from './reply/relay-params.ts';
import type { Intake } from './request/receive.ts';
import type { Router } from './routing/router.ts';

export interface DataPlane {
  readonly authenticator: Authenticator;
  readonly catalog: () => ServingCatalog;
  readonly intake: Intake;
  readonly admission: AdmissionParts;
  readonly savedResponses: SavedResponses;
  /** The keys of organizations that have provider keys of their own. */
  readonly ownKeys: HeldOwnKeys;
  readonly metering: Metering;
  readonly refusedRequests: RefusedRequests;
  readonly relay: RelayContext;
  readonly clock: Clock;
  /** False while the spool takes no records: then requests are refused before anything is sent. */
  readonly canRecord: () => boolean;
  readonly router: Router;
  readonly externalDetectors: ExternalDetectors;
  /** null: no organization has a guardrail. */
  readonly policiesInForce: () => PoliciesInForce | null;
  readonly guardrailHeaders: GuardrailHeaders;
  readonly executionIdHeader: string;
  readonly routedModelHeader: string;
  readonly tagHeader: string;
  /** Whether the client's trace context is recorded, for the traces that jobs exports. */
  readonly keepsTraceparent: boolean;
}
