// Makes the answers to typed questions. They follow from the request (a router's questions from how the text sounds) or
// from `[[sim: <question>=...]]`, and look like the real service's: two decimals, sums that may be one hundredth short,
// maps in their own order.

import { percentDecoded } from '../directives.ts';
import { seedFrom } from '../generated-text.ts';
import { isObject, type Json } from '../json-fields.ts';
import { judgedProbability, judgedWeights } from './routing-judge.ts';

export interface Question {
  readonly type: 'noul' | 'choice' | 'score';
  readonly criteria?: unknown;
}

export interface Steering {
  readonly settings: ReadonlyMap<string, string>;
  readonly state: unknown;
  readonly seed: number;
}

/** The probability of an option that a directive asks for without giving one. */
const STEERED_PROBABILITY = 0.9;
/** Marks a number that must be written as 0.9 or 1.0 and never as 1, since the real service is written in Python. */
const DECIMAL = '\u{f8ff}';

export function answerQuestions(questions: Readonly<Record<string, Question>>, steering: Steering): Json {
  const omitted = (steering.settings.get('omit') ?? '').split(',');
  const answers = Object.entries(questions)
    .filter(([id]) => !omitted.includes(id))
    .map(([id, question]): [string, Json] => [
      id,
      answer(id, question, { ...steering, seed: seedFrom(Buffer.from(`${steering.seed} ${id}`)) }),
    ]);
  return shuffled(answers, steering.seed);
}

export function countOutcomes({ type, criteria }: Question): number {
  return type === 'noul' ? 1 : outcomesOf(criteria).length;
}

/** JSON in which every decimal keeps its decimal point. */
export function renderWithDecimals(body: Json): string {
  return JSON.stringify(body).replaceAll(new RegExp(`"${DECIMAL}([\\d.]+)${DECIMAL}"`, 'gu'), '$1');
}

function answer(id: string, question: Question, steering: Steering): Json {
  const asked = (steering.settings.get(`answer.${id}`) ?? steering.settings.get(id))
    ?.split(':')
    .map((word) => percentDecoded(word));
  const confidence =
    fractionOf(asked?.[2]) ??
    fractionOf(steering.settings.get(`${id}.confidence`)) ??
    fractionOf(steering.settings.get('confidence'));
  switch (question.type) {
    case 'noul':
      return {
        type: 'noul',
        noul: decimal(asked === undefined ? unsteeredProbability(id, steering) : probabilityOfYes(asked[0])),
      };
    case 'choice':
      return answerChoice(id, question, { asked: asked ?? askedByTruth(id, question, steering), confidence }, steering);
    case 'score':
      return answerScore(question.criteria, asked, confidence, steering.seed);
  }
}

/**
 * `ID.truth=OPTION accuracy=0.8` answers that option for 80 % of the texts and another for the rest. Which texts
 * depends on the state alone, so that a router's own words do not change it.
 */
function askedByTruth(
  id: string,
  { criteria }: Question,
  { settings, state }: Steering,
): readonly string[] | undefined {
  const truth = percentDecoded(settings.get(`${id}.truth`));
  if (truth === null) return undefined;
  const seed = seedFrom(Buffer.from(`${id} ${JSON.stringify(state)}`));
  const isRight =
    uniform(seed) < (fractionOf(settings.get(`${id}.accuracy`)) ?? fractionOf(settings.get('accuracy')) ?? 1);
  const others = outcomesOf(criteria).filter((option) => option !== truth);
  return [isRight ? truth : (others[seed % others.length] ?? truth)];
}

function unsteeredProbability(id: string, { state, seed }: Steering): number {
  return judgedProbability(id, state) ?? Math.floor(uniform(seed) * 101) / 100;
}

interface Asked {
  readonly asked: readonly string[] | undefined;
  readonly confidence: number | null;
}

function answerChoice(id: string, { criteria }: Question, { asked, confidence }: Asked, steering: Steering): Json {
  const options = outcomesOf(criteria);
  const general = steering.settings.get('choose');
  const wanted =
    asked?.[0] ??
    (general !== undefined && options.includes(percentDecoded(general)) ? percentDecoded(general) : undefined);
  const index = wanted === undefined ? -1 : options.indexOf(wanted);
  const judged = judgedWeights(id, criteria, steering.state);
  const weights = options.map((_, place) => judged?.[place] ?? uniform(steering.seed + place) ** 3 + 0.001);
  const hundredths =
    index === -1
      ? spread(weights, 100, steering.seed)
      : steered(weights, index, fractionOf(asked?.[1]) ?? STEERED_PROBABILITY);
  // An option that is not among the criteria is returned all the same, since a gateway must not rely on it.
  const choice = wanted ?? options[hundredths.indexOf(Math.max(...hundredths))] ?? null;
  const probabilities = options.map((option, place): [string, string] => [
    option,
    decimal((hundredths[place] ?? 0) / 100),
  ]);
  return {
    type: 'choice',
    choice,
    confidence: decimal(confidence ?? shapeOf(hundredths)),
    probabilities: shuffled(probabilities, steering.seed),
  };
}

function answerScore(
  criteria: unknown,
  asked: readonly string[] | undefined,
  confidence: number | null,
  seed: number,
): Json {
  const levels = Array.isArray(criteria) ? criteria : [];
  const wanted =
    asked === undefined || !/^\d+(\.\d+)?$/.test(asked[0] ?? '') ? null : Math.min(Number(asked[0]), levels.length - 1);
  const weights = levels.map((_, place) => uniform(seed + place) ** 3 + 0.001);
  const hundredths = wanted === null ? spread(weights, 100, seed) : betweenLevels(wanted, levels.length);
  const score = hundredths.reduce((sum, probability, level) => sum + (level * probability) / 100, 0);
  const legend = levels.map((description, level): [string, unknown] => [String(level), description]);
  const probabilities = hundredths.map((probability, level): [string, string] => [
    String(level),
    decimal(probability / 100),
  ]);
  return {
    type: 'score',
    score: decimal(Math.round(score * 100) / 100),
    confidence: decimal(confidence ?? shapeOf(hundredths)),
    legend: Object.fromEntries(legend),
    probabilities: Object.fromEntries(probabilities),
  };
}

/** A score of 1.5 is half of level 1 and half of level 2. */
function betweenLevels(score: number, levels: number): number[] {
  const below = Math.floor(score);
  const above = Math.round((score - below) * 100);
  return Array.from({ length: levels }, (_, level) =>
    level === below ? 100 - above : level === below + 1 ? above : 0,
  );
}

/** The requested option gets exactly its probability, the others share the rest. */
function steered(weights: readonly number[], index: number, probability: number): number[] {
  if (weights.length === 1) return [100];
  const own = Math.round(probability * 100);
  const others = spread(
    weights.filter((_, place) => place !== index),
    100 - own,
    1,
  );
  return [...others.slice(0, index), own, ...others.slice(index)];
}

/**
 * Distributes `whole` hundredths in proportion to the weights, rounded down. One seed in three leaves one hundredth
 * out, as the real service does.
 */
function spread(weights: readonly number[], whole: number, seed: number): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const exact = weights.map((weight) => (weight / sum) * whole);
  const shares = exact.map(Math.floor);
  const missing = whole - shares.reduce((total, share) => total + share, 0);
  const byRemainder = exact
    .map((share, place) => ({ place, rest: share - Math.floor(share) }))
    .sort((one, other) => other.rest - one.rest);
  for (const { place } of byRemainder.slice(0, missing - (seed % 3 === 0 && missing > 0 ? 1 : 0)))
    shares[place] = (shares[place] ?? 0) + 1;
  return shares;
}

/**
 * Confidence is the distance of the distribution from an even one, not the probability of the choice: 0.85, 0.15, 0
 * gives 0.78.
 */
function shapeOf(hundredths: readonly number[]): number {
  const even = 1 / hundredths.length;
  if (hundredths.length < 2) return 1;
  return Math.max(0, Math.round(((Math.max(...hundredths) / 100 - even) / (1 - even)) * 100) / 100);
}

function probabilityOfYes(text: string | undefined): number {
  if (text === 'true' || text === 'yes') return 0.97;
  return fractionOf(text) ?? 0.03;
}

function fractionOf(text: string | undefined): number | null {
  return text !== undefined && /^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : null;
}

function decimal(value: number): string {
  const text = String(value);
  return `${DECIMAL}${text.includes('.') ? text : `${text}.0`}${DECIMAL}`;
}

function outcomesOf(criteria: unknown): string[] {
  if (Array.isArray(criteria)) return criteria.map((_, level) => String(level));
  return isObject(criteria) ? Object.keys(criteria) : [];
}

/** Puts the entries in an order that does not depend on the request's. */
function shuffled(entries: readonly (readonly [string, unknown])[], seed: number): Json {
  const ranked = entries.map((entry) => ({ entry, rank: seedFrom(Buffer.from(`${seed} order ${entry[0]}`)) }));
  return Object.fromEntries(ranked.sort((one, other) => one.rank - other.rank).map(({ entry }) => entry));
}

/** A number between 0 and 1 that depends only on the seed. */
function uniform(seed: number): number {
  return seedFrom(Buffer.from(`uniform ${seed}`)) / 2 ** 32;
}
