// `tollgate prices diff`: compares the prices of the configuration file with the price list that Tollgate ships, and
// writes the listed ones into the file if asked to. Nothing else ever changes a price.

import { ConfigurationText } from '../domain/configuration-text/configuration-text.ts';
import { comparePrices, type PriceComparison } from '../domain/list-prices/compare-prices.ts';
import type { ListedModel } from '../domain/list-prices/listed-model.ts';
import { writeListedPrices } from '../domain/list-prices/listed-price.ts';
import { MODEL_KIND_NAMES, type ModelKind } from '../domain/models/apis.ts';
import { systemClock } from '../platform/clock.ts';
import { type Command, type CommandContext, expectAction, parseArguments } from './command/command.ts';
import {
  configurationPath,
  type FileProvider,
  listOf,
  openConfigurationText,
  providersOf,
  USUAL_FILE,
  writeChangedText,
} from './configuration-file/configuration-text.ts';
import { loadPriceList, PRICE_LIST, PRICE_LIST_TEXT, type PriceList } from './configuration-file/price-list.ts';

export const pricesCommand: Command = {
  usage: ['tollgate prices diff [--write] [--file FILE]'],
  summary:
    'Compares the prices of the configuration file (tollgate.yaml) with the price list that comes with Tollgate. ' +
    '--write writes the listed ones into the file. Prices that a list cannot know (service tiers, speeds, ' +
    'regions, factors) stay, and so do prices that an anchor shares or that have dates of their own. Exit code ' +
    '1: prices differ and were not written.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    write: { type: 'boolean', default: false },
    file: { type: 'string' },
  });
  expectAction(positionals, ['diff']);
  const path = configurationPath(values.file, environment);
  let file = openConfigurationText(path);
  const { text: before } = file;
  const found = compareFile(file, await loadPriceList(), systemClock.nowMs());
  for (const one of found) for (const line of describe(one, file)) print(line);
  const different = found.filter(({ comparison }) => comparison !== null && comparison.differences.length > 0);
  const written = different.filter(({ byHand }) => byHand === null);
  if (values.write && written.length > 0) {
    for (const { place, comparison } of written) file = withPrice(file, place, comparison?.merged);
    writeChangedText(path, before, file.text);
  }
  print(summarize(found, different, values.write ? path : null));
  const left = values.write ? different.length - written.length : different.length;
  return left > 0 ? 1 : 0;
}

interface FoundPrice {
  readonly place: readonly (string | number)[];
  readonly model: string;
  readonly provider: string;
  readonly listed: ListedModel | null;
  /** null: the price cannot be compared, for the reason in `reason`. */
  readonly comparison: PriceComparison | null;
  readonly reason: string;
  /** Why the price must be changed by hand; null: it can be written. */
  readonly byHand: string | null;
}

function compareFile(file: ConfigurationText, list: PriceList, nowMs: number): readonly FoundPrice[] {
  const providers = providersOf(file);
  return listOf(file.values['models']).flatMap((model, at) =>
    listOf(model['served_by']).map((deployment, index) => {
      const provider = providers.find(({ id }) => id === deployment['provider']);
      const place = ['models', at, 'served_by', index, 'price'];
      const named = { place, model: String(model['id']), provider: String(deployment['provider']) };
      const byHand = whyByHand(file, place, deployment['price']);
      return { ...named, byHand, ...comparePrice(deployment, { provider, list, nowMs, kind: kindOf(model['kind']) }) };
    }),
  );
}

/** The parts of the price that writing would change or lose although the list says nothing about them. */
function whyByHand(file: ConfigurationText, place: FoundPrice['place'], price: unknown): string | null {
  if (file.isShared(place) || file.holdsShared(place)) return 'shared by an anchor: change it by hand';
  const isDated = (one: unknown): boolean =>
    typeof one === 'object' && one !== null && ('from' in one || 'between' in one);
  return Array.isArray(price) || isDated(price) ? 'of dates or hours of its own: change it by hand' : null;
}

function kindOf(written: unknown): ModelKind {
  return MODEL_KIND_NAMES.find((kind) => kind === written) ?? 'text';
}

interface ComparedWith {
  readonly provider: FileProvider | undefined;
  readonly list: PriceList;
  readonly nowMs: number;
  readonly kind: ModelKind;
}

function comparePrice(
  { model, price }: Readonly<Record<string, unknown>>,
  { provider, list, nowMs, kind }: ComparedWith,
): Pick<FoundPrice, 'listed' | 'comparison' | 'reason'> {
  const without = (reason: string, listed: ListedModel | null = null) => ({ listed, comparison: null, reason });
  const ofProvider = provider === undefined ? null : list.provider(provider);
  if (ofProvider === null) return without(`${PRICE_LIST.name} has no prices of this provider`);
  const listed = ofProvider.find(String(model));
  if (listed === null) {
    const near = ofProvider.nearest(String(model));
    return without(`not listed${near.length === 0 ? '' : `; names like it: ${near.join(', ')}`}`);
  }
  const written = writeListedPrices(listed, nowMs);
  if (written === null) return without(`${listed.id} is not priced by tokens in the list`, listed);
  if (price === undefined) return { listed, comparison: unpriced(written.prices), reason: '' };
  const comparison = comparePrices(price, written.prices, { kind, nowMs });
  return comparison === null
    ? without('its price in the file has a mistake', listed)
    : { listed, comparison, reason: '' };
}

function unpriced(prices: readonly unknown[]): PriceComparison {
  return {
    differences: [{ term: 'price', own: null, listed: JSON.stringify(prices.length === 1 ? prices[0] : prices) }],
    onlyOwn: [],
    merged: prices.length === 1 ? prices[0] : prices,
  };
}

function describe(
  { place, model, provider, listed, comparison, reason, byHand }: FoundPrice,
  file: ConfigurationText,
): string[] {
  const name = `${model} at ${provider} (line ${file.lineOf(place.slice(0, -1))})`;
  if (comparison === null) return [`${name}: ${reason}`];
  const { differences, onlyOwn } = comparison;
  if (differences.length === 0) return [];
  const width = Math.max(...differences.map(({ term }) => term.length));
  return [
    `${name}, in the list ${listed?.id}:`,
    ...differences.map(
      ({ term, own, listed: other }) => `  ${term.padEnd(width)}  ${own ?? 'none'} -> ${other ?? 'none'}`,
    ),
    ...(onlyOwn.length === 0 ? [] : [`  only in the file, and kept: ${onlyOwn.join(', ')}`]),
    ...(byHand === null ? [] : [`  ${byHand}`]),
  ];
}

/** Matches the comment that names the source of a price; it is replaced together with the price. */
const SOURCE = new RegExp(`${PRICE_LIST.name} \\S+ of \\d{4}-\\d{2}-\\d{2}`);

function withPrice(file: ConfigurationText, place: FoundPrice['place'], price: unknown): ConfigurationText {
  const replaced = reopen(file.replace(place, price));
  return reopen(replaced.replaceText([place.slice(0, -1), place], SOURCE, PRICE_LIST_TEXT));
}

function reopen(text: string): ConfigurationText {
  const opened = ConfigurationText.open(text, USUAL_FILE);
  if (!opened.ok) throw new Error(`a written price broke the file: ${opened.errors.join('; ')}`);
  return opened.file;
}

function summarize(found: readonly FoundPrice[], different: readonly FoundPrice[], written: string | null): string {
  const unlisted = found.filter(({ comparison }) => comparison === null).length;
  const same = found.length - unlisted - different.length;
  const byHand = different.filter((one) => one.byHand !== null).length;
  const counts =
    `${same} as in ${PRICE_LIST_TEXT}, ${different.length} different` +
    `${byHand === 0 ? '' : ` (${byHand} to be changed by hand)`}, ${unlisted} not compared`;
  if (different.length === byHand) return counts;
  return written === null
    ? `${counts}; "tollgate prices diff --write" writes the listed ones into the file`
    : `${counts}; the listed ones are written to ${written}: see them with tollgate apply ${written} --dry-run`;
}
