// Parses a configuration file into plain data, or into a list of all its mistakes, each with its line.

import { type Document, isMap, isScalar, type LineCounter, type Node, type Pair, type Scalar, visit } from 'yaml';
import type { z } from 'zod';
import { wordsOf, YAML_TYPES } from '../refusals/issue-words.ts';
import { issuesWithin } from '../refusals/union-issues.ts';
import { checkReferences, NOTHING_STORED, type StoredNames } from './check-references.ts';
import type { Configuration } from './configuration.ts';
import { containsPlaceholder, interpolate, mistakenReference, referencesToPlaceholders } from './interpolation.ts';
import type { Place, Problem } from './problem.ts';
import { configurationSchema } from './schema/configuration-schema.ts';
import { readAliases } from './yaml-aliases.ts';
import { openYaml, plainValueOf, type YamlMistake } from './yaml-document.ts';

export type ParsedConfiguration =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly errors: readonly string[] };

/**
 * `fileName` is what the errors call the file. `stored`: the names that the installation has already. `later`: they are
 * not known yet, so references to names that are not in the file are no errors.
 */
export function parseConfigurationFile(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
  fileName = 'tollgate.yaml',
  stored: StoredNames | 'later' = NOTHING_STORED,
): ParsedConfiguration {
  if (containsPlaceholder(text))
    return { ok: false, errors: [`${fileName}: holds characters of the private use area (U+E000 to U+E002)`] };
  const { document, lines, mistakes } = openYaml(referencesToPlaceholders(text));
  const complaints: YamlMistake[] = [...mistakes, ...readAliases(document).mistakes, ...mistakenFile(document)];
  if (complaints.length === 0) {
    const unset = interpolateValues(document, environment);
    for (const [node, problems] of unset)
      complaints.push(...problems.map((message) => ({ offset: node.range?.[0] ?? 0, message })));
    const result = readDocument(document, unset, stored);
    if (result.ok && complaints.length === 0) return result;
    if (!result.ok) complaints.push(...result.complaints);
  }
  return { ok: false, errors: print(complaints, lines, fileName) };
}

/** A file of LiteLLM's has one mistake, rather than one for each of its values. */
function mistakenFile(document: Document): readonly YamlMistake[] {
  if (!document.has('model_list')) return [];
  const message = 'model_list: is of LiteLLM\'s configuration, which "tollgate import litellm" converts';
  return [{ offset: offsetOf(document, ['model_list']), message }];
}

/**
 * Puts the environment's values into the document. Returns the values whose variables are missing or written in another
 * notation, with their mistakes.
 */
function interpolateValues(
  document: Document,
  environment: Readonly<Record<string, string | undefined>>,
): Map<Scalar, string[]> {
  const unset = new Map<Scalar, string[]>();
  visit(document, {
    Scalar(key, node) {
      if (key === 'key' || typeof node.value !== 'string') return;
      const mistake = mistakenReference(node.value);
      const { text, missing } = interpolate(node.value, environment);
      node.value = text;
      const unsetVariables = missing.map((name) => `the environment variable ${name} is not set`);
      if (mistake !== null) unset.set(node, [mistake]);
      else if (missing.length > 0) unset.set(node, unsetVariables);
    },
  });
  return unset;
}

/**
 * Validates the document. A value whose variable is not set has been reported already, so other mistakes at its place
 * are left out.
 */
function readDocument(
  document: Document,
  unset: ReadonlyMap<unknown, unknown>,
  stored: StoredNames | 'later',
): { ok: true; configuration: Configuration } | { ok: false; complaints: YamlMistake[] } {
  const plain = plainValueOf(document);
  if (!plain.ok) return { ok: false, complaints: [{ offset: 0, message: plain.message }] };
  const root = plain.value ?? {};
  const shape = configurationSchema.safeParse(root);
  const shapeProblems = shape.success
    ? []
    : shape.error.issues.flatMap(issuesWithin).flatMap((issue) => describeIssue(issue, root));
  const references = checkReferences(root, stored === 'later' ? NOTHING_STORED : stored);
  const problems = [...shapeProblems, ...references].filter(
    ({ place, isDangling }) => !unset.has(document.getIn(place, true)) && !(isDangling && stored === 'later'),
  );
  if (shape.success && problems.length === 0) return { ok: true, configuration: shape.data };
  return {
    ok: false,
    complaints: problems.map((problem) => ({ offset: offsetOf(document, problem.place), message: describe(problem) })),
  };
}

/** Words zod's issues for the reader of the file. No value is quoted: it may be a secret. */
function describeIssue(issue: z.core.$ZodIssue, root: unknown): Problem[] {
  const place = issue.path as Place;
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ place: [...place, key], message: 'unknown key' }));
  if (valueAt(root, place) === undefined) return [{ place, message: 'is missing' }];
  return [{ place, message: wordsOf(issue, YAML_TYPES) }];
}

function describe({ place, message }: Problem): string {
  const path = place
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
  return path === '' ? message : `${path}: ${message}`;
}

function valueAt(root: unknown, place: Place): unknown {
  let value = root;
  for (const step of place)
    value = typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[step] : undefined;
  return value;
}

/** The offset of a place in the text: that of its key, or of the nearest enclosing key that exists. */
function offsetOf(document: Document, place: Place): number {
  for (let length = place.length; length > 0; length -= 1) {
    const parent = document.getIn(place.slice(0, length - 1), true);
    const key = place[length - 1];
    const pair = isMap(parent)
      ? parent.items.find((item: Pair) => isScalar(item.key) && item.key.value === key)
      : undefined;
    const node = isScalar(pair?.key) ? pair.key : (document.getIn(place.slice(0, length), true) as Node | undefined);
    if (node?.range != null) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}

function print(complaints: readonly YamlMistake[], lines: LineCounter, fileName: string): string[] {
  const sorted = [...complaints].sort((a, b) => a.offset - b.offset);
  return [
    ...new Set(
      sorted.map(({ offset, message }) => `${fileName}:${Math.max(1, lines.linePos(offset).line)}: ${message}`),
    ),
  ];
}
