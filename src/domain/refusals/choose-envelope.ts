// Chooses the envelope of a refusal: the route's, except for families with an envelope of their own. Only this file
// knows the exceptions.

import type { RefusalFamily } from './refusal-rule.ts';

/**
 * The envelope of a route, named in the route table. `chat` is `openai` with another type for one refusal (spec 7.4).
 */
export type EnvelopeName = 'gateway' | 'platform' | 'provider_keys' | 'chat' | 'openai' | 'messages' | 'systemone';

/** Which form the operator chose for refusals of credentials, credit and limits (spec 7.4). */
export type AdmissionForm = 'flat' | 'dialect';

export type ChosenEnvelope = EnvelopeName | 'admission_flat' | 'admission_openai' | 'admission_messages';

export function chooseEnvelope(
  family: RefusalFamily,
  routeEnvelope: EnvelopeName,
  admissionForm: AdmissionForm,
): ChosenEnvelope {
  switch (family) {
    // Spec 7.6: the request was refused before it reached its route. SDKs show such a body in part at most, so if the
    // operator chose the routes' own forms, they apply to these refusals too.
    case 'gateway':
      return admissionForm === 'flat' ? 'gateway' : GATEWAY_FORMS[routeEnvelope];
    case 'credit':
    case 'traffic':
      return admissionForm === 'flat' ? 'admission_flat' : DIALECT_FORMS[routeEnvelope];
    case 'request':
    case 'service':
      return routeEnvelope;
  }
}

/** What `dialect` means for refusals of credentials. */
const GATEWAY_FORMS: Readonly<Record<EnvelopeName, ChosenEnvelope>> = {
  gateway: 'gateway',
  platform: 'gateway',
  provider_keys: 'gateway',
  chat: 'chat',
  openai: 'openai',
  messages: 'messages',
  systemone: 'gateway',
};

/** What `dialect` means on each route; routes without an error format of their own stay flat. */
const DIALECT_FORMS: Readonly<Record<EnvelopeName, ChosenEnvelope>> = {
  gateway: 'admission_flat',
  platform: 'admission_flat',
  provider_keys: 'admission_flat',
  chat: 'admission_openai',
  openai: 'admission_openai',
  messages: 'admission_messages',
  // Spec 7.5: always flat.
  systemone: 'admission_flat',
};
