// Checks a typed-question request against the spec (2.6, 4.9, 8): types of its fields, options of a choice, levels of a
// score.
//
// Missing fields pass: the provider answers them with its own 422 (spec 7.5). A state may be nested, since clients send
// messages and records as they are, but all its values are text (spec 4.9). The inside of instructions and descriptions
// is not checked: they may be a string or any JSON structure.

import type { Refusal } from '../refusals/refusal.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export const OPTIONS_MAX = 255;
export const LEVELS_MIN = 2;
export const LEVELS_MAX = 10;
const NOUL_OUTCOMES = ['true', 'false'];
/** Longer ids are cut before they are shown: the path becomes part of the reply. */
const ID_CHARACTERS_MAX = 48;

const TEXT_REASON = 'must be text: a string, or an object or array of text values';
const TEXT_OR_NULL_REASON = 'must be text: a string, an object or an array, or null';
/** A deeper value is named by its ancestor at this level: the path becomes part of the reply. */
const PATH_LEVELS_MAX = 4;

const ANY_LENGTH = (): null => null;

/**
 * `bytes` are those of a request that the scanner has found to be one JSON object. `checkLength` is called only for a
 * body without other mistakes.
 */
export function checkQuestionsBody(
  bytes: Uint8Array,
  checkLength: (body: JsonObject) => Refusal | null = ANY_LENGTH,
): Refusal | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { kind: 'invalid_json' };
  }
  return isObject(body) ? (checkQuestions(body) ?? checkLength(body)) : { kind: 'body_not_an_object' };
}

/** null when there is nothing to refuse, else the refusal of the first field at fault, named by its path. */
export function checkQuestions(body: JsonObject): Refusal | null {
  const state = body['state'] ?? null;
  const wrong = state === null ? null : notTextIn(state, 'state', 0);
  if (wrong !== null) return refuse(wrong, TEXT_REASON);
  const questions = body['questions'] ?? null;
  if (questions === null) return null;
  if (!isObject(questions)) return refuse('questions', 'must be an object of questions by id');
  for (const id in questions) {
    const refusal = checkQuestion(questions[id], pathOf('questions', id));
    if (refusal !== null) return refusal;
  }
  return null;
}

/** The path of the first value that is not text; null when all are. */
function notTextIn(value: unknown, path: string, level: number): string | null {
  if (typeof value === 'string') return null;
  if (!Array.isArray(value) && !isObject(value)) return path;
  for (const [key, found] of Object.entries(value)) {
    const inner = level === PATH_LEVELS_MAX ? path : Array.isArray(value) ? `${path}[${key}]` : pathOf(path, key);
    const wrong = notTextIn(found, inner, Math.min(level + 1, PATH_LEVELS_MAX));
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkQuestion(question: unknown, path: string): Refusal | null {
  if (!isObject(question)) return refuse(path, 'must be an object');
  if (!isTextOrNull(question['instructions'] ?? null)) return refuse(`${path}.instructions`, TEXT_OR_NULL_REASON);
  const criteria = question['criteria'] ?? null;
  const criteriaPath = `${path}.criteria`;
  switch (question['type'] ?? null) {
    case 'noul':
      return criteria === null ? null : checkOutcomes(criteria, criteriaPath);
    case 'choice':
      return criteria === null ? null : checkOptions(criteria, criteriaPath);
    case 'score':
      return criteria === null ? null : checkLevels(criteria, criteriaPath);
    case null:
      return null;
    default:
      return refuse(`${path}.type`, 'must be "noul", "choice" or "score"');
  }
}

function checkOutcomes(criteria: unknown, path: string): Refusal | null {
  if (!isObject(criteria)) return refuse(path, 'must be an object with the keys "true" and "false"');
  for (const outcome in criteria) {
    if (!NOUL_OUTCOMES.includes(outcome))
      return refuse(
        pathOf(path, outcome),
        'is no outcome of this question: its criteria have the keys "true" and "false"',
      );
  }
  return checkDescriptions(criteria, path);
}

function checkOptions(criteria: unknown, path: string): Refusal | null {
  if (!isObject(criteria)) return refuse(path, 'must be an object of descriptions by option');
  const options = Object.keys(criteria).length;
  if (options < 1 || options > OPTIONS_MAX)
    return refuse(path, `must have 1 to ${OPTIONS_MAX} options, not ${options}`);
  return checkDescriptions(criteria, path);
}

function checkLevels(criteria: unknown, path: string): Refusal | null {
  if (!Array.isArray(criteria)) return refuse(path, 'must be an array of descriptions, lowest level first');
  if (criteria.length < LEVELS_MIN || criteria.length > LEVELS_MAX) {
    return refuse(path, `must have ${LEVELS_MIN} to ${LEVELS_MAX} levels, not ${criteria.length}`);
  }
  const wrong = criteria.findIndex((description) => !isTextOrNull(description));
  return wrong === -1 ? null : refuse(`${path}[${wrong}]`, TEXT_OR_NULL_REASON);
}

function checkDescriptions(criteria: JsonObject, path: string): Refusal | null {
  for (const option in criteria) {
    if (!isTextOrNull(criteria[option])) return refuse(pathOf(path, option), TEXT_OR_NULL_REASON);
  }
  return null;
}

function refuse(field: string, reason: string): Refusal {
  return { kind: 'invalid_field', field, reason };
}

/** Ids and options are the caller's own words: one that is not a plain name is shown in brackets and quotes. */
function pathOf(path: string, key: string): string {
  if (/^[A-Za-z_][\w-]{0,47}$/.test(key)) return `${path}.${key}`;
  const shown = key.length > ID_CHARACTERS_MAX ? `${key.slice(0, ID_CHARACTERS_MAX)}...` : key;
  return `${path}[${JSON.stringify(shown)}]`;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Objects, arrays, null and strings pass; numbers and booleans do not. */
function isTextOrNull(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'object';
}
