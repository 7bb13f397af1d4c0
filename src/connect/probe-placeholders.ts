// Measures how a model treats placeholders of cloaked values: it gets small tasks that contain a placeholder, as any
// client would send them, and its replies are searched for the placeholder. Only a verbatim copy can be restored.

import { askChat, type GatewayResult } from './ask-gateway.ts';

export interface ProbedPlaceholders {
  readonly verbatim: number;
  /** Replies with something like the placeholder: other digits, other letters, or blanks in it. */
  readonly altered: number;
  readonly absent: number;
}

export interface ProbeParams {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly samples: number;
  /** Returns twelve digits, different for each sample. */
  readonly digits: () => string;
}

const TASKS: readonly ((placeholder: string) => string)[] = [
  (placeholder) => `Write one sentence that reminds ${placeholder} of tomorrow's meeting.`,
  (placeholder) => `Write a JSON object with the members "to" and "subject" for a mail to ${placeholder}.`,
  (placeholder) => `Write a line of Python that calls send(to, text) to greet ${placeholder}.`,
  (placeholder) => `Say in one sentence: "${placeholder} called about order 1178 and waits for an answer."`,
];
const MAX_TOKENS = 300;
const DIGITS_ALIKE = 5;

/** Sends one request after another. A refusal by the gateway ends the measurement with the reason. */
export async function probePlaceholders(params: ProbeParams): Promise<GatewayResult<ProbedPlaceholders>> {
  const found = { verbatim: 0, altered: 0, absent: 0 };
  for (let sample = 0; sample < params.samples; sample += 1) {
    const digits = params.digits();
    const placeholder = `TGE${digits}`;
    const task = TASKS[sample % TASKS.length] as (typeof TASKS)[number];
    const body = {
      model: params.model,
      max_tokens: MAX_TOKENS,
      messages: [{ role: 'user', content: task(placeholder) }],
    };
    const asked = await askChat(params.url, params.key, body);
    if (!asked.ok) return asked;
    found[likenessOf(asked.value, digits)] += 1;
  }
  return { ok: true, value: found };
}

function likenessOf(text: string, digits: string): keyof ProbedPlaceholders {
  if (text.includes(`TGE${digits}`)) return 'verbatim';
  const plain = text.replace(/[^0-9A-Za-z]/g, '').toLowerCase();
  const isLike = plain.includes(digits.slice(0, DIGITS_ALIKE)) || plain.includes(digits.slice(-DIGITS_ALIKE));
  return isLike || /tge\d/.test(plain) ? 'altered' : 'absent';
}
