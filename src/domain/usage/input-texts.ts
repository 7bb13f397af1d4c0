// Finds the texts of APIs where only the input has tokens, in the given fields of a request, for counting them when the
// provider reported no usage.

import { type CountableDialect, type CountableText, parseObject } from './countable-text.ts';

/** Vectors, ranks and the like have no tokens to count. */
const NO_TOKENS: CountableText = { texts: [], formatTokens: 0 };

/** Each field is a text, a list of texts, the tokens of one text, or a list of such lists. */
export function inputTexts(...fields: readonly string[]): CountableDialect {
  return {
    requestText: (body) => {
      const request = parseObject(body);
      return textsAndTokens(fields.flatMap((field) => request?.[field]));
    },
    responseText: () => NO_TOKENS,
    streamText: () => NO_TOKENS,
  };
}

/** null: a part is neither text nor tokens. */
function textsAndTokens(parts: readonly unknown[]): CountableText | null {
  const texts: string[] = [];
  let formatTokens = 0;
  for (const part of parts) {
    if (typeof part === 'string') texts.push(part);
    else if (typeof part === 'number') formatTokens += 1;
    else if (Array.isArray(part) && part.every((token) => typeof token === 'number')) formatTokens += part.length;
    else return null;
  }
  return { texts, formatTokens };
}
