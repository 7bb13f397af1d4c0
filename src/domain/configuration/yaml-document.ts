// Opens YAML texts. Mistakes are described without quoting the text, since it may contain secrets.

import { type Document, type ErrorCode, LineCounter, parseDocument, type YAMLParseError } from 'yaml';

export interface OpenedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
  /** Without the mistakes of aliases, which readAliases finds. */
  readonly mistakes: readonly YamlMistake[];
}

/** A mistake in a YAML text, in its syntax or its content. `offset`: in characters from the text's beginning. */
export interface YamlMistake {
  readonly offset: number;
  readonly message: string;
}

/** `uniqueKeys` false: a mapping may contain a key twice. */
export function openYaml(text: string, { uniqueKeys = true } = {}): OpenedYaml {
  const lines = new LineCounter();
  // At its default log level, the library's warnings on stderr quote keys that are mappings or lists.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error', uniqueKeys });
  const mistakes = document.errors.map((error) => ({ offset: error.pos[0], message: withoutSource(error) }));
  return { document, lines, mistakes };
}

export type PlainValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** The plain value of a document, which must have no mistakes, neither its own nor of its aliases. */
export function plainValueOf(document: Document): PlainValue {
  try {
    return { ok: true, value: document.toJS() };
  } catch (error) {
    // The library throws when aliases expand to too much.
    return { ok: false, message: (error as Error).message };
  }
}

/** Replacements for messages that quote the text anywhere. */
const WORDS: Partial<Record<ErrorCode, string>> = {
  BAD_DIRECTIVE: 'Invalid directive',
  BAD_DQ_ESCAPE: 'Invalid escape sequence',
  TAG_RESOLVE_FAILED: 'A tag that cannot be resolved',
  MULTIPLE_DOCS: 'The file has several documents ("---" begins another): only one can be read',
};

/**
 * All other messages quote only after a word and a colon; "Missing , or : between ..." has no word before its colon.
 */
function withoutSource({ code, message }: YAMLParseError): string {
  return WORDS[code] ?? message.replace(/(?<=\w): .*$/s, '');
}
