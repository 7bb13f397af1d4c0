// Opens texts in YAML. What is wrong with one is said without quoting it, since it may hold secrets.

import { type Document, type ErrorCode, LineCounter, parseDocument, type YAMLParseError } from 'yaml';

export interface OpenedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
  /** Without those of its aliases: see readAliases. */
  readonly mistakes: readonly YamlMistake[];
}

/** Something wrong in a YAML text: its syntax or what it says. `offset`: in characters from the text's beginning. */
export interface YamlMistake {
  readonly offset: number;
  readonly message: string;
}

/** `uniqueKeys` false: a key may stand twice in a mapping. */
export function openYaml(text: string, { uniqueKeys = true } = {}): OpenedYaml {
  const lines = new LineCounter();
  // At its default level the library writes warnings to stderr that quote keys which are mappings or lists.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error', uniqueKeys });
  const mistakes = document.errors.map((error) => ({ offset: error.pos[0], message: withoutSource(error) }));
  return { document, lines, mistakes };
}

export type PlainValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** Of a document without mistakes, those of its aliases included. */
export function plainValueOf(document: Document): PlainValue {
  try {
    return { ok: true, value: document.toJS() };
  } catch (error) {
    // The library throws when aliases expand to too much.
    return { ok: false, message: (error as Error).message };
  }
}

/** In place of messages that quote the text anywhere. */
const WORDS: Partial<Record<ErrorCode, string>> = {
  BAD_DIRECTIVE: 'Invalid directive',
  BAD_DQ_ESCAPE: 'Invalid escape sequence',
  TAG_RESOLVE_FAILED: 'A tag that cannot be resolved',
};

/** All others quote only after a word and a colon; "Missing , or : between ..." has no word before its colon. */
function withoutSource({ code, message }: YAMLParseError): string {
  return WORDS[code] ?? message.replace(/(?<=\w): .*$/s, '');
}
