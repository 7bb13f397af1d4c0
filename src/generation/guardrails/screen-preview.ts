// Screens the request of a dry run of auto routing as a real request of the organization would be screened, so that the
// classifier never sees what it must not. Nothing is recorded or counted.

import { Buffer } from 'node:buffer';
import { stageOf } from '../../domain/guardrails/compile-policy.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { DataPlane } from '../plane.ts';
import { applyEdits } from '../request/edits.ts';
import { rulesOf } from './policies-in-force.ts';
import { refusalOfUnread, screenAndAsk } from './screen-and-ask.ts';

type ScreeningParts = Pick<DataPlane, 'relay' | 'externalDetectors' | 'policiesInForce'>;

export interface PreviewedRequest {
  readonly organizationId: string;
  readonly dialect: Dialect;
  readonly body: Buffer;
}

/**
 * Returns the body that goes on. Only the rules of the organization as a whole apply, since a dry run has no key and no
 * team.
 */
export async function screenPreview(
  parts: ScreeningParts,
  { organizationId, dialect, body }: PreviewedRequest,
): Promise<Buffer | Refusal> {
  const policies = parts.policiesInForce();
  const found = policies?.ofOrganization(organizationId, dialect.api) ?? null;
  if (policies === null || found === null) return body;
  const compiled = rulesOf(found);
  if (compiled === 'refuse') return { kind: 'guardrail_unavailable' };
  if (compiled === null) return body;
  const rules = stageOf(compiled, 'input');
  if (rules === null) return body;
  const whole = { stage: 'input' as const, body, places: dialect.texts, parts: null };
  const scopes = rules.cloaks ? { key: policies.cloakKeyOf(organizationId), apiKeyId: '', conversation: '' } : null;
  const by = {
    workers: inTurnsOf(parts.relay.workers, organizationId),
    ask: (texts: readonly string[]) => parts.externalDetectors.ask(compiled, rules, organizationId, texts),
  };
  const screened = await screenAndAsk(by, compiled, whole, { scopes, values: null });
  const { blocked, edits } = screened;
  if (blocked !== null) {
    const { policy, rule, entity } = blocked;
    return { kind: 'guardrail_blocked', guardrail: { policy, rule, entity, stage: 'input' } };
  }
  const unread = refusalOfUnread(screened, compiled);
  if (unread !== null) return unread;
  return edits.length === 0 ? body : Buffer.concat(applyEdits(body, edits));
}
