// Expands a provider's `preset` and `with` to the settings that they stand for, in the terms of the configuration file.

import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from './presets.ts';

export type ExpandedPreset =
  | { readonly ok: true; readonly provider: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly at: 'preset' | 'with'; readonly message: string };

/** A value becomes part of an address, so no character may end a host name or begin another part of the address. */
const VALUE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}(?::[0-9]{1,5})?$/;
const TEMPLATE = /\{([a-z_]+)\}/g;

export function expandPreset(name: string, values: Readonly<Record<string, string>>): ExpandedPreset {
  if (!(PRESET_NAMES as readonly string[]).includes(name))
    return { ok: false, at: 'preset', message: `is none of ${PRESET_NAMES.join(', ')}` };
  const preset: Preset = PRESETS[name as PresetName];
  const { parameters = {}, derived = {} } = preset;
  const strange = Object.keys(values).find((key) => parameters[key] === undefined);
  if (strange !== undefined) return { ok: false, at: 'with', message: unknownParameter(name, strange, parameters) };
  const filled: Record<string, string> = {};
  for (const [key, { default: usual }] of Object.entries(parameters)) {
    const value = values[key] ?? usual;
    if (value === undefined) return { ok: false, at: 'with', message: `must say ${key}, which preset ${name} needs` };
    if (value !== usual && !VALUE.test(value))
      return { ok: false, at: 'with', message: `${key} must be letters, digits, ".", "_" or "-", as in an address` };
    filled[key] = value;
  }
  for (const [key, { from, is, otherwise }] of Object.entries(derived))
    filled[key] = fill(is[filled[from] ?? ''] ?? otherwise, filled);
  return { ok: true, provider: fillAll(preset.provider, filled) as Readonly<Record<string, unknown>> };
}

function unknownParameter(name: string, strange: string, parameters: Readonly<Record<string, unknown>>): string {
  const known = Object.keys(parameters);
  return known.length === 0
    ? `says ${strange}, and preset ${name} takes nothing`
    : `says ${strange}, and preset ${name} takes ${known.join(' and ')}`;
}

/** `{model}` and `{path}` stay: each request fills them in. */
function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(TEMPLATE, (whole, name: string) => values[name] ?? whole);
}

function fillAll(value: unknown, values: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return fill(value, values);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((inner: unknown) => fillAll(inner, values));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillAll(inner, values)]));
}
