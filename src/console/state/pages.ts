// A listing that comes in pages: the first when it is shown, later ones below it when somebody asks for more.

import { useRef, useState } from 'preact/hooks';
import { type Answer, addressOf, type Query, type Refusal, send } from '../api.ts';
import { type Load, useLoad } from './load.ts';

interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

export interface Pages<Row> extends Load<Page<Row>> {
  readonly more: {
    readonly isBusy: boolean;
    readonly refusal: Refusal | null;
    /** null: there are no more. */
    readonly read: (() => void) | null;
  };
}

/** Pages that `more` reads at once, so that ten thousand rows are ten clicks and not a hundred. */
const AT_ONCE = 10;

/** `again` reads as many pages as are shown: a row of the tenth may have been changed. */
export function usePages<Row>(path: string, query: Query, { atOnce = AT_ONCE } = {}): Pages<Row> {
  const key = addressOf(path, { query });
  const count = useRef({ key, pages: 1 });
  if (count.current.key !== key) count.current = { key, pages: 1 };
  const load = useLoad<Page<Row>>(key, (signal) => readPages(path, query, null, count.current.pages, signal));
  const [later, setLater] = useState<{ readonly of: Page<Row> | null; readonly page: Page<Row> } | null>(null);
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly refusal: Refusal | null }>(IDLE);
  const shown = later !== null && later.of === load.data ? joined(load.data, later.page) : load.data;
  const cursor = shown?.next_cursor ?? null;
  const read = async () => {
    if (state.isBusy) return;
    const { data: of } = load;
    setState({ isBusy: true, refusal: null });
    const answer = await readPages<Row>(path, query, cursor, atOnce);
    setState({ isBusy: false, refusal: answer.ok ? null : answer.refusal });
    if (!answer.ok || count.current.key !== key) return;
    count.current = { key, pages: count.current.pages + atOnce };
    setLater({
      of,
      page: later !== null && later.of === of ? (joined(later.page, answer.data) ?? answer.data) : answer.data,
    });
  };
  return { ...load, data: shown, more: { ...state, read: cursor === null ? null : () => void read() } };
}

const IDLE = { isBusy: false, refusal: null };

function joined<Row>(first: Page<Row> | null, later: Page<Row>): Page<Row> | null {
  return first === null ? null : { ...first, data: [...first.data, ...later.data], next_cursor: later.next_cursor };
}

async function readPages<Row>(
  path: string,
  query: Query,
  from: string | null,
  count: number,
  signal?: AbortSignal,
): Promise<Answer<Page<Row>>> {
  let [all, cursor]: [Page<Row> | null, string | null] = [null, from];
  for (let page = 0; page < count; page++) {
    const address = addressOf(path, { query: { ...query, cursor } });
    const answer = await send<Page<Row>>({ method: 'get', address }, signal);
    if (!answer.ok) return answer;
    all = all === null ? answer.data : joined(all, answer.data);
    cursor = answer.data.next_cursor;
    if (cursor === null) break;
  }
  return { ok: true, data: all ?? { data: [], next_cursor: null } };
}
