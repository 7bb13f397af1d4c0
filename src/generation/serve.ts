// Serves a generation request from its head to its end, on one screen and in the same order for every dialect
// (ARCHITECTURE, "The path of a request"):
//
//   authenticate -> receive and scan -> read fields and bounds -> (screen ->) (own keys ->) (route, where the virtual
//     model is named ->) resolve model -> admit (hold) -> record -> relay -> meter and settle (in the relay's end)
//
// When everything is in memory, no step waits between the last byte of the body and the record. After each step that
// did wait, a request whose client has left is dropped: nothing is sent or recorded, and its holds are released.

import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Exchange } from '../http/exchange.ts';
import { withSocketsRead } from '../platform/event-loop/tick.ts';
import { inTurnsOf } from '../platform/worker-pool.ts';
import { admit } from './admission/admit.ts';
import { admitProvisionally } from './admission/admit-provisionally.ts';
import { resolveModel } from './catalog/resolve-model.ts';
import type { Dialect } from './dialects/dialect.ts';
import { screenRequest } from './guardrails/screen-request.ts';
import { OpenRequest } from './open-request.ts';
import { ownKeysAlone } from './own-keys/own-keys-alone.ts';
import type { DataPlane } from './plane.ts';
import { type ReceivedFrom, receiveRequest } from './request/receive.ts';
import { routeRequest } from './routing/route-request.ts';
import { startRelay } from './start-relay.ts';

export function serveGeneration(plane: DataPlane, dialect: Dialect): (exchange: Exchange) => void {
  return (exchange) => serve(plane, dialect, exchange);
}

function serve(plane: DataPlane, dialect: Dialect, exchange: Exchange): void {
  const atMs = plane.clock.monotonicMs();
  const request = new OpenRequest(plane, dialect, exchange, atMs, serveWhole);
  const identified = plane.authenticator.authenticateKey(exchange.authorization, exchange.apiKey, atMs, exchange);
  // A refusal that needs no look-up is answered before a byte of the body is received.
  if ('kind' in identified) return exchange.refuse(identified);
  receiveRequest(exchange, identified, plane.intake, dialect.form ?? null, request);
}

/** The steps from the last byte of the body to the relay. */
async function serveWhole(request: OpenRequest, received: ReceivedFrom<ScopedPrincipal>): Promise<void> {
  const { plane, dialect, exchange, receivedAtMs: atMs } = request;
  try {
    request.onWhole(received);
    const asSent = request.readControlFields();
    if (request.refuseOrDrop(asSent)) return;

    // Guardrails come before every step that may send the body's texts away. Routing is such a step: it asks the
    // classifier, a provider.
    const screened = screenRequest(plane, request, asSent);
    const read = screened instanceof Promise ? await screened : screened;
    if (request.refuseOrDrop(read)) return;

    const addingOwnKeys = request.principal.hasOwnKeys ? request.useOwnKeys() : null;
    const ownKeysRefused = addingOwnKeys instanceof Promise ? await addingOwnKeys : addingOwnKeys;
    if (request.refuseOrDrop(ownKeysRefused)) return;

    const routing = routeRequest(plane, request, read);
    const routed = routing instanceof Promise ? await routing : routing;
    if (request.refuseOrDrop(routed)) return;
    request.onRouted(routed);

    const model = routed?.model ?? read.requestedModel;
    const resolved = resolveModel(request.catalog, dialect.api, model, request.principal.allowedModels);
    if (request.refuseOrDrop(resolved)) return;
    const { served } = resolved;

    // A continued response is looked up only for a request that could be admitted even if that response added no
    // tokens.
    if (request.needsLookUp && request.admission === null) {
      const refusal = await admitProvisionally(plane, request, [served.model.id], 0);
      if (request.refuseOrDrop(refusal)) return;
    }
    const continuing = request.continuationAmong(resolved.deployments);
    const continued = continuing instanceof Promise ? await continuing : continuing;
    if (request.refuseOrDrop(continued)) return;

    const { cooldowns } = plane.relay;
    const fitting = request.fittingOf(continued.deployments);
    if (request.refuseOrDrop(fitting)) return;
    const priced = request.pricedOf(fitting);
    if (request.refuseOrDrop(priced)) return;
    const deployments = cooldowns.filter(priced, request.principal.organizationId, atMs);
    if (request.refuseOrDrop(deployments)) return;

    // Nothing is sent before this admission is granted. It replaces a provisional one.
    if (!plane.canRecord()) return exchange.refuse({ kind: 'billing_unavailable' });
    request.releaseAdmission();
    const admitting = admit(request.admissionOf(served, continued.carriedTokens), plane.admission);
    let admission = request.keepAdmission(admitting instanceof Promise ? await withSocketsRead(admitting) : admitting);
    // When the organization cannot pay for the service, only its own keys serve, and the request is admitted anew:
    // `alone` then replaces the model, the deployments and the refusal.
    const alone = ownKeysAlone(served, deployments, admission);
    if (alone !== null)
      admission = request.keepAdmission(
        await admit(request.admissionOf(alone.served, continued.carriedTokens), plane.admission),
      );
    if (request.refuseOrDrop(admission)) return;

    const workers = inTurnsOf(plane.relay.workers, request.principal.organizationId);
    const checking = dialect.check?.(request.received.body, workers, served.model) ?? null;
    const bodyRefused = checking instanceof Promise ? await checking : checking;
    if (request.refuseOrDrop(bodyRefused)) return;

    startRelay(plane, request, { read, served, deployments, serviceRefusal: null, admission, ...alone });
  } catch (fault) {
    exchange.fail(fault);
  } finally {
    request.release();
  }
}
