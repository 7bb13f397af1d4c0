// THE route table (spec 4): method, path, permission, envelope, handler. A route that is not here does not exist.

import { listModelProviders } from './control-plane/catalog/list-model-providers.ts';
import { listModels } from './control-plane/catalog/list-models.ts';
import { type GenerationLookup, getGeneration } from './control-plane/executions/get-generation.ts';
import { type FindGenerations, listGenerations } from './control-plane/executions/list-generations.ts';
import { chatCompletions } from './data-plane/dialects/chat-completions.ts';
import { countTokens } from './data-plane/dialects/count-tokens.ts';
import type { Dialect } from './data-plane/dialects/dialect.ts';
import { imageEdits, imageGenerations } from './data-plane/dialects/images.ts';
import { messages } from './data-plane/dialects/messages.ts';
import { responses } from './data-plane/dialects/responses.ts';
import { systemone } from './data-plane/dialects/systemone.ts';
import type { Authenticator } from './data-plane/identity/authenticate.ts';
import { type DataPlane, serveGeneration } from './data-plane/serve-generation.ts';
import { serveSavedResponse } from './data-plane/serve-saved-response.ts';
import type { OrganizationPermission } from './domain/identity/permit.ts';
import type { ScopedPrincipal } from './domain/identity/principal.ts';
import type { Catalog } from './domain/models/catalog.ts';
import type { Exchange } from './http/exchange.ts';
import type { Route } from './http/route.ts';

export interface RouteParts {
  readonly plane: DataPlane;
  readonly authenticator: Authenticator;
  readonly catalog: () => Catalog;
  readonly lookup: GenerationLookup;
  readonly findGenerations: FindGenerations;
  /** APIs whose admission refusals the operator switched to their dialect. */
  readonly dialectRefusals: ReadonlySet<string>;
  /** Names of what is not ready; empty when this process can serve. */
  readonly notReady: () => readonly string[];
}

export function createRoutes(parts: RouteParts): readonly Route[] {
  const allow = (permission: OrganizationPermission, handle: Handle) => authorized(parts.authenticator, permission, handle);
  /** What the routes of generations have in common: an envelope, an admission form, and the one path of a request. */
  const generate = (envelope: Route['envelope'], dialect: Dialect) => ({
    envelope,
    admissionForm: parts.dialectRefusals.has(dialect.api) ? ('dialect' as const) : ('flat' as const),
    handle: serveGeneration(parts.plane, dialect),
  });
  return [
    { method: 'POST', path: '/v1/chat/completions', ...generate('openai', chatCompletions) },
    { method: 'POST', path: '/v1/responses', ...generate('openai', responses) },
    { method: 'GET', path: '/v1/responses', envelope: 'openai', handle: refuseUpgrade },
    { method: 'GET', path: '/v1/responses/:id', envelope: 'openai', handle: serveSavedResponse(parts.plane, '') },
    { method: 'DELETE', path: '/v1/responses/:id', envelope: 'openai', handle: serveSavedResponse(parts.plane, '') },
    { method: 'POST', path: '/v1/responses/:id/cancel', envelope: 'openai', handle: serveSavedResponse(parts.plane, '/cancel') },
    { method: 'GET', path: '/v1/responses/:id/input_items', envelope: 'openai', handle: serveSavedResponse(parts.plane, '/input_items') },
    { method: 'POST', path: '/v1/messages', ...generate('messages', messages) },
    { method: 'POST', path: '/v1/messages/count_tokens', ...generate('messages', countTokens) },
    { method: 'POST', path: '/v1/images/generations', ...generate('openai', imageGenerations) },
    { method: 'POST', path: '/v1/images/edits', ...generate('openai', imageEdits) },
    { method: 'POST', path: '/v1/systemone', ...generate('systemone', systemone) },
    { method: 'GET', path: '/v1/generation', envelope: 'platform', handle: allow('usage.read', getGeneration(parts.lookup)) },
    { method: 'GET', path: '/v1/generations', envelope: 'platform', handle: allow('usage.read', listGenerations(parts.findGenerations)) },
    { method: 'GET', path: '/v1/models', envelope: 'platform', handle: allow('inference', listModels(parts.catalog)) },
    { method: 'GET', path: '/v1/models/providers', envelope: 'platform', handle: allow('inference', listModelProviders(parts.catalog)) },
    { method: 'GET', path: '/healthz', envelope: 'platform', handle: (exchange) => exchange.answerJson(200, '{"status":"ok"}') },
    { method: 'GET', path: '/readyz', envelope: 'platform', handle: (exchange) => answerReadiness(exchange, parts.notReady()) },
  ];
}

type Handle = (exchange: Exchange, principal: ScopedPrincipal) => void | Promise<void>;

/** A control-plane route: its permission first, then its handler. */
function authorized(authenticator: Authenticator, permission: OrganizationPermission, handle: Handle): Route['handle'] {
  return async (exchange) => {
    const identified = await authenticator.authenticate(exchange.authorization, exchange.apiKey, permission);
    if ('kind' in identified) return exchange.refuse(identified);
    await handle(exchange, identified);
  };
}

/** POST over HTTPS is the only transport; 426 is what makes clients that dial a WebSocket first fall back to it (spec 4.2). */
function refuseUpgrade(exchange: Exchange): void {
  if (exchange.header('upgrade')?.toLowerCase() === 'websocket') exchange.refuse({ kind: 'websocket_not_supported' });
  else exchange.refuse({ kind: 'method_not_allowed', allow: ['POST'] });
}

function answerReadiness(exchange: Exchange, notReady: readonly string[]): void {
  exchange.answerJson(notReady.length === 0 ? 200 : 503, JSON.stringify({ status: notReady.length === 0 ? 'ready' : 'not ready', not_ready: notReady }));
}
