// Explains in sentences why a model served a request (spec 2.4, 3.2).

export interface RouteFacts {
  readonly tier?: string;
  readonly classified_tier?: string;
  readonly reason: string;
  readonly confidence?: number;
  readonly cached: boolean;
  readonly task?: string;
  readonly picked_by?: string;
  readonly correction: boolean;
  readonly previous_model?: string;
  readonly previous_tier?: string;
  readonly sticky: boolean;
  readonly baseline_model?: string;
}

export const REASONS: Readonly<Record<string, string>> = {
  classified: 'As classified',
  tier_not_permitted: 'Tier not permitted',
  low_confidence_escalated: 'One tier up: unsure',
  correction_escalated: 'One tier up: corrected',
  classifier_failed: 'Fallback: classifier failed',
  no_request_text: 'Fallback: no text',
  classifier_skipped: 'Fallback: token count',
  continuation: 'Continues a response',
};

/** `model` is the model that served. */
export function routeInWords(route: RouteFacts, model: string | null): string[] {
  const words = [reasonInWords(route)];
  if (route.cached) words.push('The classification of an earlier request in the same turn was used again.');
  if (route.task !== undefined && route.task !== '') words.push(`The kind of work is “${route.task}”.`);
  words.push(pickedInWords(route, model));
  if (route.correction)
    words.push(
      `The message corrects the previous answer${route.previous_model ? `, which ${route.previous_model} gave` : ''}.`,
    );
  else if (route.previous_model !== undefined)
    words.push(`The previous turn was served by ${route.previous_model}${inBrackets(route.previous_tier)}.`);
  if (route.sticky) words.push('The conversation is long and stayed on its model, so that its prompt cache is used.');
  if (route.baseline_model !== undefined && route.baseline_model !== model)
    words.push(`Costs are compared with ${route.baseline_model}, the model of the strongest tier.`);
  return words;
}

function reasonInWords({
  reason,
  classified_tier: classified,
  tier,
  confidence,
  previous_tier: previous,
}: RouteFacts): string {
  const sure = confidence === undefined ? '' : ` with a confidence of ${confidence.toFixed(2)}`;
  switch (reason) {
    case 'classified':
      return `The classifier chose the tier “${classified ?? tier}”${sure}, and that tier served.`;
    case 'low_confidence_escalated':
      return `The classifier chose “${classified}”${sure}, below the policy’s floor: one tier above served, “${tier}”.`;
    case 'correction_escalated':
      return previous === tier
        ? `The previous answer was said to be wrong. “${tier}” is the highest tier, so it served again.`
        : `The previous answer was said to be wrong: one tier above “${previous ?? 'its own'}” served, “${tier}”.`;
    case 'classifier_failed':
      return `The classifier did not answer in time, so the fallback tier served: “${tier}”.`;
    case 'no_request_text':
      return `The request has no text written by a person, so the fallback tier served: “${tier}”.`;
    case 'classifier_skipped':
      return `The request only counts tokens, in a turn not classified yet: the fallback tier served, “${tier}”.`;
    case 'continuation':
      return 'The request continues a saved response, so the model of that response served.';
    case 'tier_not_permitted':
      return `The chosen tier has no model that the caller may use, so “${tier}” served.`;
    default:
      return `The reason is “${reason}”.`;
  }
}

function inBrackets(tier: string | undefined): string {
  return tier ? ` (${tier})` : '';
}

function pickedInWords({ picked_by: picked, task, tier }: RouteFacts, model: string | null): string {
  const name = model ?? 'The model';
  if (picked === 'strength')
    return `${name} was taken first because the policy names it strong at “${task ?? 'this work'}”.`;
  if (picked === 'native_api') return `${name} was taken first because it speaks the API that was called.`;
  return tier === undefined ? `${name} served.` : `${name} was the first model of the tier that could serve.`;
}
