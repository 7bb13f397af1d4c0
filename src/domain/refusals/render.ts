// The only place where a refusal becomes bytes: status, headers and body, in the envelope that its family and route
// call for (spec 7).

import { type AdmissionForm, type ChosenEnvelope, chooseEnvelope, type EnvelopeName } from './choose-envelope.ts';
import { describeRefusal, type RefusalDescription } from './description.ts';
import { type BillingUrls, dialectAdmissionEnvelope, flatAdmissionEnvelope } from './envelopes/admission.ts';
import { gatewayEnvelope } from './envelopes/gateway.ts';
import { messagesEnvelope } from './envelopes/messages.ts';
import { openaiEnvelope } from './envelopes/openai.ts';
import { platformEnvelope } from './envelopes/platform.ts';
import { providerKeysEnvelope } from './envelopes/provider-keys.ts';
import { systemoneEnvelope } from './envelopes/systemone.ts';
import type { Refusal } from './refusal.ts';
import { type Header, retryHeaders } from './retry-headers.ts';

export type { AdmissionForm, EnvelopeName };

export interface RenderContext {
  /** The id by which the answer can be found in logs, and the answer to a generation in listings. */
  readonly requestId: string;
  /** Base of the addresses in credit refusals, without a trailing slash (PUBLIC_URL). */
  readonly publicUrl: string;
  /** Default: flat (spec 7.4). */
  readonly admissionForm?: AdmissionForm;
}

export interface RenderedRefusal {
  readonly status: number;
  /** Lower-case names; no content-length and no connection header, which belong to the HTTP server. */
  readonly headers: readonly Header[];
  readonly body: string;
  /** The connection must end with this reply. */
  readonly closesConnection: boolean;
}

/** OpenAI's clients show the first to their callers, Anthropic's the second. */
const ID_HEADERS = ['x-request-id', 'request-id'] as const;
const CONTENT_TYPE: Header = ['content-type', 'application/json'];
/** RFC 9110, 15.5.2: a 401 names the scheme that would be accepted. */
const CHALLENGE: Header = ['www-authenticate', 'Bearer'];

export function renderRefusal(refusal: Refusal, envelope: EnvelopeName, context: RenderContext): RenderedRefusal {
  const description = describeRefusal(refusal);
  const chosen = chooseEnvelope(description.family, envelope, context.admissionForm ?? 'flat');
  const body = envelopeOf(description, chosen, context);
  return {
    status: description.status,
    headers: [...headersOf(description), ...ID_HEADERS.map((name): Header => [name, context.requestId])],
    // At the top level in every envelope (spec 7.1, 7.7).
    body: JSON.stringify({
      ...body,
      ...(description.guardrail === null ? {} : { guardrail: description.guardrail }),
      request_id: context.requestId,
    }),
    closesConnection: description.closesConnection,
  };
}

function envelopeOf(refusal: RefusalDescription, chosen: ChosenEnvelope, context: RenderContext): object {
  switch (chosen) {
    case 'gateway':
      return gatewayEnvelope(refusal);
    case 'platform':
      return platformEnvelope(refusal);
    case 'provider_keys':
      return providerKeysEnvelope(refusal);
    case 'chat':
    case 'openai':
      return openaiEnvelope(refusal, chosen);
    case 'messages':
      return messagesEnvelope(refusal);
    case 'systemone':
      return systemoneEnvelope(refusal);
    case 'admission_flat':
      return flatAdmissionEnvelope(refusal, billingUrls(context.publicUrl));
    case 'admission_openai':
      return dialectAdmissionEnvelope(refusal, billingUrls(context.publicUrl), 'openai');
    case 'admission_messages':
      return dialectAdmissionEnvelope(refusal, billingUrls(context.publicUrl), 'messages');
  }
}

function headersOf(refusal: RefusalDescription): readonly Header[] {
  const headers: Header[] = [CONTENT_TYPE, ...retryHeaders(refusal)];
  if (refusal.status === 401) headers.push(CHALLENGE);
  // RFC 9110, 15.5.6: a 405 says which methods are allowed; an empty list is legal.
  if (refusal.allow !== null) headers.push(['allow', refusal.allow.join(', ')]);
  return headers;
}

function billingUrls(publicUrl: string): BillingUrls {
  return { balanceUrl: `${publicUrl}/v1/billing/credits`, topUpUrl: `${publicUrl}/v1/billing/deposits` };
}
