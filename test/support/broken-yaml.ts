// Values of a key that make a file unreadable as YAML. Each contains a secret that messages about the file may not
// quote.

export const QUOTED_SECRET = 'S3CRETVAL';

export const BROKEN_VALUES: readonly string[] = [
  `*${QUOTED_SECRET}`,
  `&${QUOTED_SECRET} *${QUOTED_SECRET}`,
  `|${QUOTED_SECRET}`,
  `>${QUOTED_SECRET}`,
  `"\\U${QUOTED_SECRET}"`,
  `!${QUOTED_SECRET}! x`,
  `!e!${QUOTED_SECRET} x`,
  `!!omap [{ ${QUOTED_SECRET}: 1 }, { ${QUOTED_SECRET}: 2 }]`,
  `"x"]${QUOTED_SECRET}`,
  `"x" ${QUOTED_SECRET}`,
  `"${QUOTED_SECRET}`,
  `[${QUOTED_SECRET}`,
  `${QUOTED_SECRET}: x`,
  `x\n---\n${QUOTED_SECRET}`,
  `x\n%${QUOTED_SECRET}`,
];
