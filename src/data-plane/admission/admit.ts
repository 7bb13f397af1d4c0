// The one gate before a provider: what a request can cost is bounded and held, or the request is refused (spec 7.4; DESIGN 4).

import type { Principal } from '../../domain/identity/principal.ts';
import { type PicoUsd, picoUsd } from '../../domain/money/pico-usd.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { ServedModel } from '../catalog/serving-catalog.ts';
import type { Dialect, RequestBounds } from '../dialects/dialect.ts';
import type { HoldFailure, WalletLeases } from './wallet-leases.ts';
import { type BodyMeasure, boundTokens, type TokenBounds, worstCasePrice } from './worst-case-price.ts';

/** What admission grants: the bounds it relied on and, for a billed organization, the hold. */
export interface Admission {
  /** null when the organization is not billed and the request has no bound. */
  readonly tokenBounds: TokenBounds | null;
  readonly walletId: string | null;
  /** Taken from the wallet's lease until the execution is settled; null when not billed. Spec: authorized_amount. */
  readonly hold: PicoUsd | null;
}

export interface AdmissionQuestion {
  readonly principal: Principal;
  readonly dialect: Dialect;
  readonly served: ServedModel;
  readonly bounds: RequestBounds;
  readonly body: BodyMeasure;
}

/** Synchronous on a warm lease; a promise only when credit must be borrowed first. */
export function admit(question: AdmissionQuestion, leases: WalletLeases): Admission | Refusal | Promise<Admission | Refusal> {
  const { principal, dialect, served, bounds } = question;
  const tokenBounds = boundTokens(dialect, served.model, bounds, question.body);
  if (!principal.billed) return { tokenBounds, walletId: null, hold: null };
  // Free of charge, and the payer's all the same: only the payer finds the record.
  if (!dialect.charged) return { tokenBounds, walletId: principal.walletId, hold: null };
  if (principal.walletId === null) return { kind: 'principal_provisioning' };
  const unbillable = bounds.refusalIfBilled ?? refuseUnboundable(bounds);
  if (unbillable !== null) return unbillable;
  if (tokenBounds === null) return { kind: 'not_safely_billable', field: dialect.outputLimitField };
  const price = served.worstPrice.get(dialect.api) ?? null;
  const worst = price === null ? null : worstCasePrice(dialect, bounds, tokenBounds, price);
  if (worst === null) return { kind: 'not_safely_billable', field: 'model', reason: 'This model has no catalog price, so its cost has no upper bound.' };
  const hold = picoUsd(worst);
  const admission: Admission = { tokenBounds, walletId: principal.walletId, hold };
  if (leases.tryHold(principal.walletId, hold)) return admission;
  return leases.hold(principal.walletId, hold).then((failure) => (failure === null ? admission : refuseHold(failure, hold)));
}

/** A background response says what it used only to whoever fetches it later: its bill would rest on that somebody does. */
function refuseUnboundable(bounds: RequestBounds): Refusal | null {
  if (bounds.saved?.background !== true) return null;
  return { kind: 'not_safely_billable', field: 'background', reason: 'A background response reports its usage after the request has ended.' };
}

function refuseHold(failure: HoldFailure, hold: PicoUsd): Refusal {
  return failure === 'insufficient_credit' ? { kind: failure, authorizedAmount: hold } : { kind: failure };
}
