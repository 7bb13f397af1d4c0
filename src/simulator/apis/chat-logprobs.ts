// The log-probabilities of a chat completion. For a question to be answered in one token (a letter, yes or no) they are
// the simulated judge's probabilities of the options, computed like its typed answers; for any other text every token
// is likely.

import { seedFrom } from '../generated-text.ts';
import { contentTexts, firstWhole, type Json, objectsIn } from '../json-fields.ts';
import { answerQuestions, type Question, renderWithDecimals } from './systemone-answers.ts';

/** The scope of directives for such calls only: `[[sim/logprobs: ...]]`. */
export const LOGPROBS_SCOPE = 'logprobs';

export function asksForLogprobs(json: Json | null): boolean {
  return json?.logprobs === true;
}

/** Whether the request asks a question to be answered in one token. */
export function isJudgesQuestion(json: Json | null): boolean {
  return json !== null && asksForLogprobs(json) && questionOf(json) !== null;
}

export interface LogprobReply {
  /** The whole answer. */
  readonly text: string;
  readonly logprobs: Json;
}

interface Alternative {
  readonly token: string;
  readonly probability: number;
}

const QUESTION = /^Question \((\w+)\): /m;
const OPTION = /^([A-Z])\. (\S+?)(?:: (.*))?$/gm;
const YES_OR_NO = /^Reply with yes or no/m;
/** The log-probability of everything that is not listed. */
const NEVER = -9999;

/** null: the messages do not ask such a question. */
export function answerInOneToken(json: Json, settings: ReadonlyMap<string, string>): LogprobReply | null {
  const question = questionOf(json);
  if (question === null) return null;
  const { id, asked } = question;
  const state = textOf(json, 'user');
  const alternatives = YES_OR_NO.test(asked) ? yesOrNo(id, state, settings) : letters(id, { asked, state }, settings);
  const most = alternatives.toSorted((one, other) => other.probability - one.probability);
  const text = most[0]?.token ?? '';
  return {
    text,
    logprobs: { content: [told(text, most.slice(0, firstWhole(json.top_logprobs) ?? 0))], refusal: null },
  };
}

/** The log-probabilities of a text that does not answer a question. */
export function plainLogprobs(text: string): Json {
  const tokens = text.match(/\s*\S+/g) ?? [];
  return { content: tokens.map((token) => told(token, [{ token, probability: 0.9 }])), refusal: null };
}

function letters(
  id: string,
  { asked, state }: { readonly asked: string; readonly state: string },
  settings: ReadonlyMap<string, string>,
): Alternative[] {
  const options = Array.from(asked.matchAll(OPTION), ([, letter = '', name = '', words]) => ({
    letter,
    name,
    words: words ?? null,
  }));
  const criteria = Object.fromEntries(options.map(({ name, words }) => [name, words]));
  const answer = judge(id, { type: 'choice', criteria }, state, settings) as {
    choice?: unknown;
    probabilities?: Readonly<Record<string, number>>;
  };
  const shares = options.map(({ letter, name }) => ({ token: letter, probability: answer.probabilities?.[name] ?? 0 }));
  // If a directive asks for an option that does not exist, the judge answers with another token.
  return Object.hasOwn(criteria, String(answer.choice)) ? shares : [{ token: String(answer.choice), probability: 0.9 }];
}

function yesOrNo(id: string, state: string, settings: ReadonlyMap<string, string>): Alternative[] {
  const { noul = 0 } = judge(id, { type: 'noul' }, state, settings) as { noul?: number };
  // Models mostly write the answer with a capital letter.
  return [
    { token: 'Yes', probability: noul * 0.9 },
    { token: 'yes', probability: noul * 0.1 },
    { token: 'No', probability: 1 - noul },
  ];
}

function judge(id: string, question: Question, state: string, settings: ReadonlyMap<string, string>): unknown {
  const seed = seedFrom(Buffer.from(state));
  const answers = answerQuestions({ [id]: question }, { settings, state: stateIn(state), seed });
  return (JSON.parse(renderWithDecimals(answers)) as Readonly<Record<string, unknown>>)[id] ?? {};
}

function stateIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function questionOf(json: Json): { readonly id: string; readonly asked: string } | null {
  const asked = textOf(json, 'system');
  const id = QUESTION.exec(asked)?.[1];
  return id === undefined ? null : { id, asked };
}

function textOf({ messages }: Json, wanted: string): string {
  return objectsIn(messages)
    .filter(({ role }) => role === wanted)
    .flatMap(({ content }) => contentTexts(content))
    .join('\n');
}

function told(token: string, alternatives: readonly Alternative[]): Json {
  const entry = ({ token: text, probability }: Alternative) => ({
    token: text,
    logprob: probability > 0 ? Math.log(probability) : NEVER,
    bytes: [...Buffer.from(text)],
  });
  const own = alternatives.find((alternative) => alternative.token === token) ?? { token, probability: 1 };
  return { ...entry(own), top_logprobs: alternatives.map(entry) };
}
