// Screens the request of a dry run of auto routing as the organization's own would be: the classifier never sees what
// it may not. Nothing is recorded or counted.

import { Buffer } from 'node:buffer';
import { stageOf } from '../../domain/guardrails/compile-policy.ts';
import { isUnscreened } from '../../domain/guardrails/screen-whole.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { DataPlane } from '../plane.ts';
import { applyEdits } from '../request/edits.ts';
import { screenAndAsk } from './screen-and-ask.ts';

type ScreeningParts = Pick<DataPlane, 'relay' | 'externalDetectors' | 'policiesInForce'>;

export interface PreviewedRequest {
  readonly organizationId: string;
  readonly dialect: Dialect;
  readonly body: Buffer;
}

/** The body that goes on. By the rules of the organization as a whole: a dry run has no key and no team. */
export async function screenPreview(
  parts: ScreeningParts,
  { organizationId, dialect, body }: PreviewedRequest,
): Promise<Buffer | Refusal> {
  const policies = parts.policiesInForce();
  const compiled = policies?.ofOrganization(organizationId, dialect.api) ?? null;
  if (policies === null || compiled === null) return body;
  if ('unavailable' in compiled) return compiled.unavailable === 'pass' ? body : { kind: 'guardrail_unavailable' };
  const rules = stageOf(compiled, 'input');
  if (rules === null) return body;
  const whole = { stage: 'input' as const, body, places: dialect.texts, parts: null };
  const scopes = rules.cloaks ? { key: policies.cloakKeyOf(organizationId), apiKeyId: '', conversation: '' } : null;
  const by = {
    workers: inTurnsOf(parts.relay.workers, organizationId),
    ask: (texts: readonly string[]) => parts.externalDetectors.ask(compiled, rules, organizationId, texts),
  };
  const screened = await screenAndAsk(by, compiled, whole, { scopes, values: null });
  const { blocked, report, edits, isRefused } = screened;
  if (blocked !== null) {
    const { policy, rule, entity } = blocked;
    return { kind: 'guardrail_blocked', guardrail: { policy, rule, entity, stage: 'input' } };
  }
  if (isRefused === true || (isUnscreened(report) && compiled.onFailure === 'refuse'))
    return { kind: 'guardrail_unavailable', unread: 'input' };
  return edits.length === 0 ? body : Buffer.concat(applyEdits(body, edits));
}
