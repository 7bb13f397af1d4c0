// How the simulated judge answers a router's questions without directives: a tier by how hard the latest message
// sounds, a kind of work by the words that it shares with each description, a correction by words of complaint. It is
// crude, but its choices in the demo make sense, and the same text gets the same answer.

import { allStrings, isObject } from '../json-fields.ts';

/** A text has one of these when it contains its letters, so beginnings of words suffice. */
const HARD_WORDS = phrases(
  'prove, proof, derive, theorem, integral, algorithm, complexity, optimi, refactor, architect, ' +
    'design, debug, deadlock, race condition, concurren',
  'memory leak, security, vulnerab, migrat, distributed, root cause, step by step, trade-off, analy, strategy',
);
const EASY_WORDS = phrases(
  'hello, hi there, thank, translate, summari, rename, title, capital of, spell, what is, who is, list the, format',
);
const COMPLAINTS = phrases(
  "wrong, incorrect, not what i, not right, isn't right, mistake, still fails, still broken, does not " +
    "work, doesn't work, did not work, didn't work",
  "look again, try again, you missed, you forgot, fix your, nope, that is not, that's not",
);
const CODE_FENCE = '```';
const LONG_TEXT_CHARACTERS = 2000;
/** The weight of the chosen option relative to the others, before noise like the real service's is added. */
const JUDGED_WEIGHT = 8;

/** The weight of each option of a question called `tier` or `kind`; null for any other question. */
export function judgedWeights(id: string, criteria: unknown, state: unknown): number[] | null {
  if (!isObject(criteria)) return null;
  const options = Object.entries(criteria);
  const text = judgedText(state);
  if (id === 'tier') {
    const judged = Math.min(options.length - 1, Math.floor(difficultyOf(text) * options.length));
    return options.map((_, place) =>
      place === judged ? JUDGED_WEIGHT : JUDGED_WEIGHT / 8 ** Math.abs(place - judged),
    );
  }
  if (id !== 'kind') return null;
  const words = new Set(wordsOf(text));
  return options.map(
    ([name, description]) =>
      1 +
      JUDGED_WEIGHT * wordsOf(`${name} ${allStrings(description).join(' ')}`).filter((word) => words.has(word)).length,
  );
}

/** The probability that the latest message corrects the previous answer; null for any question but `correction`. */
export function judgedProbability(id: string, state: unknown): number | null {
  if (id !== 'correction') return null;
  const text = judgedText(state);
  return COMPLAINTS.some((complaint) => text.includes(complaint)) ? 0.93 : 0.04;
}

/** The latest text of a state, in lower case and without directives. */
function judgedText(state: unknown): string {
  return (allStrings(state).at(-1) ?? '').replaceAll(/\[\[sim[^\]]*\]\]/g, '').toLowerCase();
}

/** 0 for small talk, 0.5 and more for questions that take thought. */
function difficultyOf(text: string): number {
  const count = (words: readonly string[]): number => words.filter((word) => text.includes(word)).length;
  const length = Math.min(0.4, (0.4 * text.length) / LONG_TEXT_CHARACTERS);
  const difficulty =
    0.2 + length + 0.25 * count(HARD_WORDS) - 0.15 * count(EASY_WORDS) + (text.includes(CODE_FENCE) ? 0.15 : 0);
  return Math.min(0.99, Math.max(0, difficulty));
}

/** The words that are long enough to have a meaning, cut to six letters. */
function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[a-z]{4,}/g) ?? []).map((word) => word.slice(0, 6));
}

function phrases(...lists: string[]): string[] {
  return lists.flatMap((list) => list.split(', '));
}
