// The address bar as the only owner of what is shown: the screen, its filters, the window, the zone.

import { computed, signal } from '@preact/signals';

const BASE = '/console';

export const current = signal(read());

function read(): { readonly screen: string; readonly params: Readonly<Record<string, string>> } {
  const screen = location.pathname.slice(BASE.length).replace(/^\/+|\/+$/g, '');
  return {
    screen: screen === '' ? 'overview' : screen,
    params: Object.fromEntries(new URLSearchParams(location.search)),
  };
}

addEventListener('popstate', () => {
  current.value = read();
});

/** What goes along from one screen to the next. */
const KEPT = ['zone', 'range', 'from', 'to', 'whose'] as const;

export type Params = Readonly<Record<string, string | null | undefined>>;

export function hrefOf(screen: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const name of KEPT) {
    const value = current.value.params[name];
    if (value !== undefined) search.set(name, value);
  }
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') search.delete(name);
    else search.set(name, value);
  }
  return `${BASE}/${screen}${search.size === 0 ? '' : `?${search}`}`;
}

export function go(screen: string, params: Params = {}): void {
  history.pushState(null, '', hrefOf(screen, params));
  current.value = read();
  document.getElementById('main')?.focus();
  scrollTo(0, 0);
}

/** Changes parameters of the screen that is shown. A filter that is typed leaves no trail in the history. */
export function setParams(params: Params, { isNewEntry = true } = {}): void {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') search.delete(name);
    else search.set(name, value);
  }
  const address = `${location.pathname}${search.size === 0 ? '' : `?${search}`}`;
  if (isNewEntry) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  current.value = read();
}

export const params = computed(() => current.value.params);
