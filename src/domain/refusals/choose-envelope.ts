// Which envelope a refusal wears: the route's own, except for the families that bring theirs. The only place that knows
// the exceptions.

import type { RefusalFamily } from './refusal-rule.ts';

/**
 * The envelope of a route, named in the route table. `chat` is `openai` but for the type of one refusal (spec 7.4).
 * provider-keys (7.4) joins with the routes that need it.
 */
export type EnvelopeName = 'gateway' | 'platform' | 'chat' | 'openai' | 'messages' | 'systemone';

/** The operator's switch per route (spec 7.4). */
export type AdmissionForm = 'flat' | 'dialect';

export type ChosenEnvelope = EnvelopeName | 'admission_flat' | 'admission_openai' | 'admission_messages';

export function chooseEnvelope(
  family: RefusalFamily,
  routeEnvelope: EnvelopeName,
  admissionForm: AdmissionForm,
): ChosenEnvelope {
  switch (family) {
    // Spec 7.6: raised before the request reaches its route, whichever it is.
    case 'gateway':
      return 'gateway';
    case 'credit':
    case 'traffic':
      return admissionForm === 'flat' ? 'admission_flat' : DIALECT_FORMS[routeEnvelope];
    case 'request':
    case 'service':
      return routeEnvelope;
  }
}

/** Routes without an error dialect of their own have nothing to switch to. */
const DIALECT_FORMS: Readonly<Record<EnvelopeName, ChosenEnvelope>> = {
  gateway: 'admission_flat',
  platform: 'admission_flat',
  chat: 'admission_openai',
  openai: 'admission_openai',
  messages: 'admission_messages',
  // Spec 7.5: flat, whatever the switch says.
  systemone: 'admission_flat',
};
