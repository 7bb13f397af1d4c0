// Request bodies for relay tests: finds the top-level `model` value of a JSON text without the product's scanner, and
// makes the same text with another value there.

/** The text around the value of the top-level `model` key. */
export interface BodyWithHole {
  readonly before: string;
  readonly after: string;
}

const SENTINEL = 'sentinel-3f1c9a';
const MODEL_KEY = /"model"\s*:\s*"(?:[^"\\]|\\.)*"/g;

/** Tries every place that looks like a `model` key, and keeps the one that JSON.parse takes for the top-level one. */
export function findModelHole(body: string): BodyWithHole {
  for (const match of body.matchAll(MODEL_KEY)) {
    const valueAt = match.index + match[0].indexOf('"', match[0].indexOf(':'));
    const hole = { before: body.slice(0, valueAt), after: body.slice(match.index + match[0].length) };
    const parsed = JSON.parse(fillModel(hole, SENTINEL)) as { model?: unknown };
    if (parsed.model === SENTINEL) return hole;
  }
  throw new Error('the body names no model');
}

export function fillModel(hole: BodyWithHole, model: string): string {
  return `${hole.before}${JSON.stringify(model)}${hole.after}`;
}

/**
 * A body that any parser changes when it writes it again: odd spacing, numbers beyond doubles, escaped and repeated
 * unknown keys, `__proto__`, lone surrogates. `padBytes` makes it at least that long.
 */
export function oddBody(options: { stream: boolean; padBytes?: number }): BodyWithHole {
  const before = `\n {\t"zeta" : 1e400 ,"big":9007199254740993, "tiny":-0.0e-000,
    "\\u0061lpha":{"model":"inner","model":"again","__proto__":{"stream":"no"}},"messages" :[ {"role":"user",
      "content":"caf\\u00e9 \\ud83d\\ude00 \u{1f600} \\/ \\uD800 \\"model\\":\\"fake\\"" } ], "__proto__":null,"model" \r\n: `;
  const after =
    `  ,"stream":${options.stream}, "list":[1,2.50,3E+2,[[[]]], ` +
    `{}],"pad":"${'p'.repeat(options.padBytes ?? 0)}","same":1,"same":2 }\n\t`;
  return { before, after };
}
