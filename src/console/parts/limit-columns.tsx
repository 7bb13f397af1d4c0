// The columns of tables of limits: kind, amounts, the used share, and the time of the reset.

import type { AnswerOf } from '../api.ts';
import { asFloat, capitalized, dollars, percent, whole } from '../logic/format.ts';
import { Gauge } from './figures.tsx';
import { type Column, momentColumn, NamedCell } from './table.tsx';

export type Limit = AnswerOf<'/v1/usage/limits/current'>['data'][number];

/** `noteOf` is written below the kind. */
export function kindColumn(noteOf: (limit: Limit) => string | null): Column<Limit> {
  return {
    name: 'Limit',
    raw: ({ kind, window, scope }) => `${scope} ${window ?? ''} ${kind}`,
    show: (limit) => <NamedCell note={noteOf(limit)}>{kindInWords(limit)}</NamedCell>,
  };
}

export function kindInWords({ kind, window }: Limit): string {
  return kind === 'budget' ? `Budget per ${window}` : capitalized(kind);
}

/** A column of amounts: dollars of a budget, counts of other limits. */
export function amountColumn(
  name: string,
  amountOf: (limit: Limit) => string | number,
  { isExtra = false } = {},
): Column<Limit> {
  const show = (limit: Limit) =>
    limit.kind === 'budget' ? dollars(String(amountOf(limit))) : whole(Number(amountOf(limit)));
  return { name, raw: amountOf, show, isNumber: true, isExtra };
}

export const USED = amountColumn('Used', ({ used }) => used);
export const MAXIMUM = amountColumn('Maximum', ({ limit }) => limit);
export const RESETS = momentColumn<Limit>('Resets', ({ resets_at: at }) => at);
export const USED_SHARE: Column<Limit> = {
  name: 'Share',
  raw: usedShare,
  show: (limit) => <Gauge used={usedShare(limit)} label={`${percent(usedShare(limit), 0)} used`} />,
};

/** The used share of a limit. A limit of 0 counts as used up. */
function usedShare({ used, limit }: Limit): number {
  return asFloat(limit) === 0 ? 1 : asFloat(used) / asFloat(limit);
}
